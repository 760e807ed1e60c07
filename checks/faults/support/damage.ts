import { copyFileSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Random } from "../../harness/random.ts";
import type { Excuses } from "./judge.ts";
import type { FolderState } from "./promised-folder.ts";

/** Damage to a data folder while no broker runs. */
export interface Damage {
  readonly state: Exclude<FolderState, "earlier">;
  readonly hits: readonly Hit[];
  /** Whether the store is deleted afterwards, so that the next start rebuilds it from the chain. */
  readonly isRebuild: boolean;
}

interface Hit {
  readonly file: string;
  readonly kind: Kind;
}

interface Place {
  /** Absolute path of the file. */
  readonly file: string;
  /** Absolute path of its copy from an earlier time. */
  readonly earlier: string;
  readonly random: Random;
}

const pageBytes = 4096;
const flipsMax = 20;
const rangeBytesMax = 65_536;
/** Chance that the restore of an earlier copy also removes the file's write-ahead log. A person who restores a file may remove its log or forget to. */
const withoutLogChance = 0.5;

/** Ways to damage one file that is not empty. */
const kinds = {
  "bits flipped": (place) =>
    change(place, (bytes) => {
      for (let flips = 1 + place.random.below(flipsMax); flips > 0; flips -= 1) {
        const at = place.random.below(bytes.length);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << place.random.below(8));
      }
    }),
  "page zeroed": (place) => change(place, (bytes) => void pageOf(bytes, place.random).fill(0)),
  "page of random bytes": (place) =>
    change(place, (bytes) => {
      const page = pageOf(bytes, place.random);
      for (let at = 0; at < page.length; at += 1) page[at] = place.random.below(256);
    }),
  "page of an earlier copy": (place) => {
    const old = existsSync(place.earlier) ? readFileSync(place.earlier) : Buffer.alloc(0);
    change(place, (bytes) => {
      const at =
        pageBytes * place.random.below(Math.max(1, Math.floor(Math.min(bytes.length, old.length) / pageBytes)));
      old.copy(bytes, at, at, Math.min(at + pageBytes, bytes.length));
    });
  },
  "range zeroed": (place) =>
    change(place, (bytes) => {
      const from = place.random.below(bytes.length);
      bytes.fill(0, from, Math.min(bytes.length, from + 1 + place.random.below(rangeBytesMax)));
    }),
  truncated: (place) => truncateSync(place.file, place.random.below(statSync(place.file).size)),
  "truncated to whole pages": (place) =>
    truncateSync(place.file, pageBytes * place.random.below(Math.ceil(statSync(place.file).size / pageBytes))),
  "two pages swapped": (place) =>
    change(place, (bytes) => {
      const [one, other] = [pageOf(bytes, place.random), pageOf(bytes, place.random)];
      const kept = Buffer.from(one);
      other.copy(one);
      kept.copy(other);
    }),
  "replaced by an earlier copy": (place) => {
    if (existsSync(place.earlier)) copyFileSync(place.earlier, place.file);
    else rmSync(place.file);
    if (place.random.fraction() < withoutLogChance) rmSync(`${place.file}-wal`, { force: true });
  },
  missing: (place) => rmSync(place.file),
} satisfies Readonly<Record<string, (place: Place) => void>>;

type Kind = keyof typeof kinds;
const kindNames = Object.keys(kinds) as Kind[]; // The keys of `kinds`.

const headFile = "chain.sqlite-head";
/** Files that are damaged at random. */
export const damagedFiles = ["chain.sqlite", headFile, "store.sqlite", "chain.sqlite-wal", "store.sqlite-wal"];
/** Kinds of damage that may leave an intact but older file. */
const olderFileKinds: ReadonlySet<string> = new Set<Kind>([
  "truncated",
  "truncated to whole pages",
  "replaced by an earlier copy",
  "missing",
]);

/** Kinds of damage that may leave an intact but older head file. The file is shorter than a page, so an earlier page is a whole earlier file. */
const olderHeadKinds: ReadonlySet<string> = new Set<Kind>(["page of an earlier copy", "replaced by an earlier copy"]);

/** Chooses the damage at random. */
export function chooseDamage(random: Random): Damage {
  const state = random.pick(["stopped", "killed"] as const);
  const isRebuild = random.fraction() < 0.35;
  const some = damagedFiles.filter((file) => (state === "killed" || !isLog(file)) && (!isRebuild || isOfChain(file)));
  const first = { file: random.pick(some), kind: random.pick(kindNames) };
  const others = some.filter((file) => file !== first.file);
  if (others.length === 0 || random.fraction() > 0.15) return { state, isRebuild, hits: [first] };
  return { state, isRebuild, hits: [first, { file: random.pick(others), kind: random.pick(kindNames) }] };
}

function isLog(file: string): boolean {
  return file.endsWith("-wal");
}

function isOfChain(file: string): boolean {
  return file.startsWith("chain.");
}

/** Damages the files in `folder`. `earlier` is a folder with their copies from an earlier time. */
export function applyDamage(
  { hits, isRebuild }: Damage,
  { folder, earlier, random }: { readonly folder: string; readonly earlier: string; readonly random: Random },
): void {
  for (const { file, kind } of hits) {
    const path = join(folder, file);
    if (existsSync(path) && statSync(path).size > 0) kinds[kind]({ file: path, earlier: join(earlier, file), random });
  }
  if (isRebuild)
    for (const suffix of ["", "-wal", "-shm"]) rmSync(join(folder, `store.sqlite${suffix}`), { force: true });
}

/**
 * The losses that this damage excuses. No broker can notice that chain, head file and store are all from one earlier time, or all gone
 * (docs/security.md, "What damage does"). If one of the three is intact, the broker refuses to start with the others. A store that is gone or older
 * may lack subscriptions.
 */
export function excusesOf({ hits, isRebuild }: Damage): Excuses {
  const ofChain = hits.filter(({ file }) => isOfChain(file) && file !== headFile);
  const ofStore = hits.filter(({ file }) => !isOfChain(file));
  const ofHead = hits.filter(({ file }) => file === headFile);
  const mayStoreBeOlder = isRebuild || ofStore.some((hit) => isLog(hit.file) || mayBeOlder(hit));
  const mayChainBeOlder = ofChain.some(mayBeOlder);
  return {
    mayBeEarlier: mayChainBeOlder && mayStoreBeOlder && ofHead.some(({ kind }) => olderHeadKinds.has(kind)),
    mayBeginAnew: mayChainBeOlder && isRebuild && ofHead.some(({ kind }) => kind === "missing"),
    mayForgetSubscriptions: mayStoreBeOlder,
    isChainHit: ofChain.length > 0,
    mayLoseBoth: ofChain.length * ofStore.length > 0,
  };
}

function mayBeOlder({ kind }: Hit): boolean {
  return olderFileKinds.has(kind);
}

export function describeDamage({ state, hits, isRebuild }: Damage): string {
  const what = hits.map(({ file, kind }) => `${file} ${kind}`).join(", ");
  return `${what}, after a ${state === "stopped" ? "clean stop" : "kill"}${isRebuild ? ", store deleted" : ""}`;
}

function change({ file }: Place, edit: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  edit(bytes);
  writeFileSync(file, bytes);
}

function pageOf(bytes: Buffer, random: Random): Buffer {
  const at = pageBytes * random.below(Math.ceil(bytes.length / pageBytes));
  return bytes.subarray(at, at + pageBytes);
}
