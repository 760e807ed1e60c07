import { existsSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { headFileOf, readHeadFile } from "@stele/chain";
import { manifestFile } from "../backup/manifest.ts";
import { deleteRestored } from "../backup/restore-backup.ts";
import { isRestoreUnfinished } from "../backup/restored.ts";
import { embeddedKeyFile, groupKeyFile } from "./signer.ts";
import { type GroupConfig, groupsOf, isClustered } from "../config/derived.ts";
import { flagName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { type Logger, silentLogger } from "../lib/logger.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { inspectLog } from "../lib/system/write-ahead-log.ts";
import { type KnownGroups, readKnownGroups } from "../store/sql/sqlite/known-groups.ts";

/** Size of a page of SQLite. A database of at most one page has no table. */
const pageBytes = 4096;
const nothingKnown: KnownGroups = { indexed: new Map(), signed: new Set() };
/** Ends the messages about a folder that a start or a command refuses. */
export const nothingChanged = "Nothing was changed.";

/** Dependencies of the parts that keep files in the data folder. */
export interface FolderOptions {
  readonly folder: DataFolder;
  readonly logger: Logger;
  readonly cleanup: CleanupStack;
  /** Called if a part fails without which the broker cannot run; only the first call counts. */
  readonly onFailure: (failure: Error) => void;
  /** Whether the start has failed: then closing must leave each file unchanged. */
  readonly hasFailed: () => boolean;
}

export interface FolderCheckOptions {
  readonly logger?: Logger;
  /** Whether to refuse a folder without chain, or without store if no chain is embedded. A start would create them. */
  readonly needsData?: boolean | undefined;
}

/** What a start must know about the folder. */
export interface FolderFacts {
  /** Whether the settings use a store in the folder and the folder has none: then only the head file shows how long the embedded chain was. */
  readonly needsHeadFile: boolean;
}

/** The embedded chain's file. */
export function chainFile(folder: DataFolder): string {
  return folder.path("chain.sqlite");
}

/** The store's file, unless nodes share a database. */
export function storeFile(folder: DataFolder): string {
  return folder.path("store.sqlite");
}

/** The file with the keys of clients, unless nodes share a database. */
export function keysFile(folder: DataFolder): string {
  return folder.path("keys.sqlite");
}

/**
 * Returns the data folder, for commands that must not create it.
 * @throws Error if the folder does not exist.
 */
export function requireFolder(config: Config): string {
  const folder = resolve(config.dataDir);
  if (existsSync(folder)) return folder;
  throw new Error(`${folder} does not exist: name the broker's data folder by ${flagName("dataDir")}.`);
}

/**
 * Refuses a backup: if one of its files changes, `stele restore` refuses all of it. Also refuses a folder whose restore has not finished: after an interrupted
 * restore, the operator deletes all that is in the folder.
 * @throws Error that says what to do.
 */
export function refuseUnusable(folder: string): void {
  if (existsSync(join(folder, manifestFile))) throw new Error(isBackup(folder));
  if (isRestoreUnfinished(folder)) throw new Error(isHalfRestored(folder));
}

/**
 * Refuses the folders that {@link refuseUnusable} refuses. Also refuses a folder with a damaged log of the chain, and a folder whose files show that its chain,
 * a key or its store is lost. The start would create the lost file again: a new chain replaces the old one, and a new key owns nothing. Changes nothing.
 * @throws Error that names the missing or damaged file and says what to do.
 */
export async function checkDataFolder(
  folder: DataFolder,
  config: Config,
  { logger = silentLogger, needsData = false }: FolderCheckOptions = {},
): Promise<FolderFacts> {
  refuseUnusable(folder.path("."));
  if (isStoreUsed(config) && sizeOf(storeFile(folder)) === 0 && sizeOf(`${storeFile(folder)}-wal`) > 0) {
    throw new Error(withoutStore(folder));
  }
  const groups = groupsOf(config);
  const embedded = groups.find(({ endpoints }) => endpoints === "embedded");
  const hasChain = holdsChain(chainFile(folder));
  const hasKey = sizeOf(embeddedKeyFile(folder)) > 0;
  const keyless = groups.filter((group) => isKeyMissing(folder, group));
  if (embedded !== undefined && hasChain && !hasKey) throw new Error(withoutKey(folder));
  const isPartial = (embedded !== undefined && !hasChain) || keyless.length > 0;
  const known = isPartial ? await readKnown(folder, config) : nothingKnown;
  const indexedTo = embedded && known.indexed.get(embedded.id);
  const witness = indexedTo === undefined ? describeHead(folder) : describeStore(folder, indexedTo);
  if (embedded !== undefined && !hasChain && witness !== undefined)
    throw new Error(withoutChain(folder, { witness, hasKey }));
  const signed = keyless.find(({ id }) => known.signed.has(id));
  if (signed !== undefined) throw new Error(withoutGroupKey(folder, signed));
  const lacksStore = isStoreUsed(config) && sizeOf(storeFile(folder)) === 0;
  if (needsData && embedded !== undefined && !hasChain) throw new Error(withoutData(chainFile(folder)));
  if (needsData && embedded === undefined && lacksStore) throw new Error(withoutData(storeFile(folder)));
  if (embedded !== undefined && hasChain) checkChainLog(chainFile(folder));
  if (embedded !== undefined && !hasChain && hasKey) warnOfNewChain(folder, logger);
  if (embedded !== undefined && hasChain) warnOfHead(folder, logger);
  if (isStoreUsed(config)) warnOfStoreLog(storeFile(folder), logger);
  return { needsHeadFile: lacksStore };
}

/** What the head file shows about the chain; undefined if there is no head file, or if an operator has accepted the chain. */
function describeHead(folder: DataFolder): string | undefined {
  const head = readHeadFile(chainFile(folder));
  const file = basename(headFileOf(chainFile(folder)));
  if (head.status === "intact") return `${file} beside it knows that chain up to block ${head.number}`;
  return head.status === "damaged" ? `${file} beside it is damaged, and was made for that chain` : undefined;
}

function describeStore(folder: DataFolder, indexedTo: number): string {
  return `${basename(storeFile(folder))} beside it knows that chain up to block ${indexedTo}`;
}

/** Warns of a damaged head file, and of a chain that an operator accepted. Without a store, the chain's own start refuses a damaged head file. */
function warnOfHead(folder: DataFolder, logger: Logger): void {
  const { status } = readHeadFile(chainFile(folder));
  if (status === "intact" || status === "missing") return;
  logger.warn(
    status === "damaged" ? "chain's head file damaged, the next block will write a new one" : "chain accepted as it is",
    {
      file: headFileOf(chainFile(folder)),
    },
  );
}

/** Refuses a damaged log of the chain: SQLite would treat the damaged place as the end of the log, and overwrite the blocks after it. */
function checkChainLog(file: string): void {
  const { damagedAt } = inspectLog(file);
  if (damagedAt === undefined) return;
  throw new Error(
    [
      `${file}-wal is damaged at byte ${damagedAt}: it holds the newest blocks, and those after that place would be lost.`,
      "Restore the data folder from a backup, as docs/backup.md#repair says; delete nothing in this one.",
      nothingChanged,
    ].join(" "),
  );
}

function warnOfNewChain(folder: DataFolder, logger: Logger): void {
  const remedy = "if this folder had a chain, stop now and restore the folder from a backup";
  logger.warn("new chain begun with an existing signer key: found neither chain nor store", {
    key: embeddedKeyFile(folder),
    remedy,
  });
}

/** Logs the damage of the store's log and refuses nothing: the index catches up from the chain, and nothing else has the lost subscriptions. */
function warnOfStoreLog(file: string, logger: Logger): void {
  const { damagedAt } = inspectLog(file);
  if (damagedAt === undefined) return;
  logger.error("store's log damaged: writes after that place are lost", {
    file: `${file}-wal`,
    damagedAt,
    remedy:
      "check the newest subscriptions, and subscribe again where one is missing; others may get events again; the index catches up from the chain",
  });
}

/** Whether the file, with its log, holds a chain. Beside a missing or empty database, a log does not count: SQLite deletes it. */
function holdsChain(file: string): boolean {
  const bytes = sizeOf(file);
  return bytes > pageBytes || (bytes > 0 && sizeOf(`${file}-wal`) > 0);
}

function isKeyMissing(folder: DataFolder, { id, endpoints, signer }: GroupConfig): boolean {
  return endpoints !== "embedded" && signer === undefined && sizeOf(groupKeyFile(folder, id)) === 0;
}

async function readKnown(folder: DataFolder, config: Config): Promise<KnownGroups> {
  const file = storeFile(folder);
  return isStoreUsed(config) && sizeOf(file) > 0 ? readKnownGroups(file) : nothingKnown;
}

function isStoreUsed(config: Config): boolean {
  return config.coordination === "store" && !isClustered(config);
}

function withoutStore(folder: DataFolder): string {
  const file = storeFile(folder);
  return [
    `${file} is missing or empty, and ${basename(file)}-wal beside it holds the newest subscriptions: SQLite would delete them.`,
    `Move ${basename(file)}-wal away, and put ${basename(file)} of a backup in its place: see docs/backup.md#repair.`,
    `To rebuild the store from the chain, without subscriptions, move only ${basename(file)}-wal away. ${nothingChanged}`,
  ].join(" ");
}

function withoutKey(folder: DataFolder): string {
  return [
    `${embeddedKeyFile(folder)} is missing: it holds the key of the only signer of the chain in ${chainFile(folder)}, and a new key could not publish there.`,
    "Restore it from a backup of this folder.",
    beginAnew(folder),
  ].join(" ");
}

function withoutChain(
  folder: DataFolder,
  { witness, hasKey }: { readonly witness: string; readonly hasKey: boolean },
): string {
  const chain = chainFile(folder);
  const files = hasKey ? `${chain} is` : `${chain} and ${embeddedKeyFile(folder)} are`;
  return [
    `${files} missing or empty: ${witness}, and a new chain would have none of its events.`,
    `Restore the folder from a backup, with ${basename(chain)}-wal where the backup has it.`,
    beginAnew(folder),
  ].join(" ");
}

function withoutGroupKey(folder: DataFolder, { id }: GroupConfig): string {
  const file = groupKeyFile(folder, id);
  return [
    `${file} is missing: it holds the key by which this broker has signed for group ${id}, and a new key would have neither its funds nor its rights.`,
    `Restore it from a backup of this folder, or name the key in the group's "signer".`,
    `If it is lost permanently, make a new one: (umask 077; openssl rand -hex 32 > ${file}).`,
    nothingChanged,
  ].join(" ");
}

function withoutData(file: string): string {
  const remedy = `Give the command the settings that the broker is started with, such as ${flagName("dataDir")}.`;
  return `${file} is missing or empty: a broker with these settings has not run in that folder. ${remedy} ${nothingChanged}`;
}

function isBackup(folder: string): string {
  return `${folder} is a backup, and must not change: restore it to a new folder by \`stele restore\`. ${nothingChanged}`;
}

function isHalfRestored(folder: string): string {
  return `A restore to ${folder} has not finished. Wait for it; if it was cut short, ${deleteRestored}, and restore the backup again. ${nothingChanged}`;
}

function beginAnew(folder: DataFolder): string {
  return `To begin a new, empty chain instead, move everything out of ${folder.path(".")} first. ${nothingChanged}`;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
