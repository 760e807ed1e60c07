import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Random } from "../../../harness/random.ts";
import type { Call } from "./trace.ts";

type Change = Extract<Call, { kind: "write" | "truncate" }>;
type Naming = Extract<Call, { kind: "create" | "unlink" | "link" | "rename" }>;

/** A file, whatever its name: a rename keeps its changes and syncs. */
interface File {
  readonly changes: Change[];
  readonly syncs: Call[];
}

/** A change of a name in a folder, and the file with that name. */
interface Named {
  readonly call: Naming;
  readonly file: File;
}

/** A sector of a disk is written whole or not at all. */
const sectorBytes = 512;

/** What a power loss does to a change that was not synced. */
type Fate = "kept" | "dropped" | "torn" | "zeroed";

export interface Loss {
  /** The moment of the power loss, on the clock of the trace. */
  readonly at: number;
  readonly random: Random;
  /** `ignores syncs`: syncs of database files make nothing durable. `loses nothing`: all changes are durable. Both serve as controls. */
  readonly disk?: "honest" | "ignores syncs" | "loses nothing";
}

/**
 * What a disk may hold of a folder after a power loss, given the calls that wrote to the folder. A change of a file is durable once a
 * sync of the file that began later has ended. Any other change may be kept, dropped, torn between sectors, or leave zeros. Only a sync of the folder
 * makes the names of its files durable.
 */
export class Disk {
  readonly #namings: Named[] = [];
  readonly #folderSyncs: Call[] = [];

  constructor(calls: readonly Call[], folder: string) {
    const names = new Map<string, File>();
    for (const call of calls) {
      if (call.kind === "sync" && call.path === folder) this.#folderSyncs.push(call);
      else if (call.kind === "sync") names.get(call.path)?.syncs.push(call);
      else if (call.kind === "write" || call.kind === "truncate") names.get(call.path)?.changes.push(call);
      else if (call.kind !== "send") this.#name(call, names);
    }
  }

  /** Writes to `folder` what the disk may hold after the loss. */
  rebuild(folder: string, { at, random, disk = "honest" }: Loss): void {
    mkdirSync(folder, { recursive: true });
    const choose = chooser(random);
    const durableUpTo = (syncs: readonly Call[], path = ""): number => {
      if (disk === "loses nothing") return at;
      return disk === "ignores syncs" && path.includes(".sqlite") ? 0 : syncedUpTo(syncs, at);
    };
    for (const [path, file] of this.#namesAfter({ at, choose, durableAt: durableUpTo(this.#folderSyncs) })) {
      const content = contentOf(file, { at, random, durableAt: durableUpTo(file.syncs, path) });
      writeFileSync(join(folder, basename(path)), content);
    }
  }

  #name(call: Naming, names: Map<string, File>): void {
    if (call.kind === "create" && names.has(call.path)) return;
    const file = call.kind === "create" ? { changes: [], syncs: [] } : names.get(call.path);
    if (file === undefined) return;
    this.#namings.push({ call, file });
    rename(names, { call, file });
  }

  #namesAfter({ at, choose, durableAt }: NamingLoss): ReadonlyMap<string, File> {
    const names = new Map<string, File>();
    for (const named of this.#namings) {
      const { startedAt } = named.call;
      if (startedAt >= at) break;
      if (startedAt < durableAt || choose() === "kept") rename(names, named);
    }
    return names;
  }
}

interface NamingLoss {
  readonly at: number;
  readonly choose: () => Fate;
  readonly durableAt: number;
}

function rename(names: Map<string, File>, { call, file }: Named): void {
  if (call.kind === "unlink" || call.kind === "rename") names.delete(call.path);
  if (call.kind === "create") names.set(call.path, file);
  if (call.kind === "link" || call.kind === "rename") names.set(call.to, file);
}

/** Start of the newest sync that ended by `at`. Changes that began earlier are on the disk. */
function syncedUpTo(syncs: readonly Call[], at: number): number {
  return syncs.reduce((newest, { startedAt, endedAt }) => (endedAt <= at ? Math.max(newest, startedAt) : newest), 0);
}

/**
 * Returns a function that chooses the fate of the next unsynced change. By chance, all changes have the same fate, or those after a certain one are lost, or
 * each has a random fate.
 */
function chooser(random: Random): () => Fate {
  const [fate, keptFirst] = [
    random.pick<Fate | "cut" | "mixed">(["kept", "dropped", "zeroed", "cut", "cut", "mixed", "mixed"]),
    random.below(40),
  ];
  let count = 0;
  if (fate === "mixed") return () => random.pick<Fate>(["kept", "kept", "dropped", "torn", "zeroed"]);
  if (fate !== "cut") return () => fate;
  return () => {
    count += 1;
    if (count <= keptFirst) return "kept";
    return count === keptFirst + 1 ? "torn" : "dropped";
  };
}

function contentOf(
  { changes }: File,
  { at, random, durableAt }: { readonly at: number; readonly random: Random; readonly durableAt: number },
): Buffer {
  const content = new Content();
  const choose = chooser(random);
  for (const change of changes) {
    if (change.startedAt >= at) break;
    const fate = change.startedAt < durableAt ? "kept" : choose();
    if (fate === "dropped") continue;
    if (change.kind === "truncate") content.resize(change.bytes);
    else if (fate === "kept") content.write(change.offset, change.data);
    else if (fate === "zeroed") content.write(change.offset, Buffer.alloc(change.data.length));
    else writeTorn(content, { change, random });
  }
  return content.bytes();
}

/** Writes each sector of the change with a chance of one half. */
function writeTorn(
  content: Content,
  {
    change: { offset, data },
    random,
  }: { readonly change: Extract<Change, { kind: "write" }>; readonly random: Random },
): void {
  for (let from = 0; from < data.length; ) {
    const length = Math.min(sectorBytes - ((offset + from) % sectorBytes), data.length - from);
    if (random.fraction() < 0.5) content.write(offset + from, data.subarray(from, from + length));
    from += length;
  }
}

class Content {
  #bytes = Buffer.alloc(65_536);
  #length = 0;

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  write(offset: number, data: Buffer): void {
    this.resize(Math.max(this.#length, offset + data.length));
    data.copy(this.#bytes, offset);
  }

  resize(length: number): void {
    while (length > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(this.#bytes.length)]);
    if (length < this.#length) this.#bytes.fill(0, length, this.#length);
    this.#length = length;
  }
}
