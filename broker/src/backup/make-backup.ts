import { open, readdir, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isWithin } from "../lib/system/is-within.ts";
import { makeFolder } from "../lib/system/make-folder.ts";
import { copyFile, naming } from "./copy-file.ts";
import { type BackupFile, formatManifest, type Manifest, manifestFile, toManifest } from "./manifest.ts";
import { checkNoneStuck, unlessStuck } from "./unless-stuck.ts";

/** Moves the logs of databases into their files, then keeps the files unchanged until the caller calls the returned function. */
export type Hold = () => Promise<() => Promise<void>>;

export interface BackupOptions {
  /** The data folder. */
  readonly folder: string;
  readonly holds: {
    /** Holds the chain and the store together, in matching states. Undefined if no broker uses the folder: then the backup includes their logs. */
    readonly data: Hold | undefined;
    /** Holds the keys of clients, which commands change at any time. */
    readonly keys: Hold;
  };
  /** The version of this program. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}

const dataFiles = /^(?:chain|store)\.sqlite$/;
const clientKeys = /^keys\.sqlite$/;
/** Keys of signers, and those that encrypt secrets. A running broker makes one when a group or a secret first needs it. */
const keyFiles = /\.key$/;
/** SQLite's logs beside the databases: after a kill, they hold the newest data. */
const databaseLogs = /^(?:chain|store)\.sqlite-(?:wal|journal)$/;

const unfinishedManifest = `${manifestFile}.unfinished`;

/** Free space beyond what the files need, in bytes. */
const spareBytes = 2 ** 20;

/**
 * Copies the chain, the store and the keys of a data folder into a new folder, syncs each file to disk, and writes the manifest last. The broker serves its
 * clients meanwhile, even if the disk of the target hangs.
 * @throws Error that says why the backup failed, after removing the copy; the reason of `signal`.
 */
export async function makeBackup(target: string, options: BackupOptions): Promise<Manifest> {
  const path = resolve(target);
  const { signal } = options;
  checkNoneStuck();
  const { isNew } = await unlessStuck(prepare(path, resolve(options.folder)), signal);
  try {
    const manifest = await copyAll(path, options);
    await unlessStuck(naming(join(path, manifestFile), writeManifest(path, manifest)), signal);
    return manifest;
  } catch (error) {
    await unlessStuck(removeAll(path, isNew), signal).catch(() => {}); // The first error says more.
    throw error;
  }
}

/** Creates the folder, and claims it for this backup. @throws Error if it cannot be used. */
async function prepare(path: string, folder: string): Promise<{ readonly isNew: boolean }> {
  await checkTarget(path, folder);
  const isNew = await makeFolder(path);
  await claim(path);
  return { isNew };
}

async function removeAll(path: string, isNew: boolean): Promise<void> {
  for (const name of await readdir(path)) await rm(join(path, name), { force: true });
  if (isNew) await rm(path, { recursive: true, force: true });
}

/** @throws Error if the target is not an empty or new folder, or is the data folder or inside it. */
async function checkTarget(path: string, folder: string): Promise<void> {
  if (await isWithin(path, folder)) {
    throw new Error(`${path} is in the data folder: name a folder elsewhere, best on another disk.`);
  }
  const stats = await stat(path).catch(onlyIfThere);
  if (stats !== undefined && (!stats.isDirectory() || (await readdir(path)).length > 0)) throw notEmpty(path);
}

/** Passes on what a call threw, unless the file is not there. */
function onlyIfThere(error: unknown): undefined {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
}

/** Creates the unfinished manifest, so that no other backup uses the folder. A backup that fails may then remove all its files. */
async function claim(path: string): Promise<void> {
  try {
    await writeFile(join(path, unfinishedManifest), "", { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw error instanceof Error && "code" in error && error.code === "EEXIST" ? notEmpty(path) : error;
  }
}

function notEmpty(path: string): Error {
  return new Error(`${path} exists and is not an empty folder: name a new one for each backup.`);
}

async function copyAll(path: string, options: BackupOptions): Promise<Manifest> {
  const { folder, holds, version, now, signal } = options;
  const names = (await readdir(folder)).filter(isLarge);
  await unlessStuck(checkSpace(path, { folder, names }), signal);
  const copy = (names: readonly RegExp[], hold?: Hold) => copyMatching(path, { ...options, names, hold });
  const first = await copy([clientKeys], holds.keys);
  const madeAt = new Date(now()).toISOString();
  const data = await copy(holds.data === undefined ? [dataFiles, databaseLogs] : [dataFiles], holds.data);
  const keys = await copy([keyFiles]); // After the data: so each key that the data needs is there.
  return toManifest({ version, madeAt, files: [...keys, ...first, ...data] });
}

/** Whether a file counts for the free space. Logs do too: they are copied, or a hold moves their bytes into the databases first. */
function isLarge(name: string): boolean {
  return dataFiles.test(name) || databaseLogs.test(name);
}

interface CopyOptions extends Pick<BackupOptions, "folder" | "signal"> {
  readonly names: readonly RegExp[];
  readonly hold?: Hold | undefined;
}

async function copyMatching(
  path: string,
  { folder, names, hold, signal }: CopyOptions,
): Promise<readonly BackupFile[]> {
  const release = await hold?.();
  try {
    const files: BackupFile[] = [];
    for (const name of (await readdir(folder)).filter((one) => names.some((pattern) => pattern.test(one)))) {
      const isOpenDatabase = hold !== undefined && name.endsWith(".sqlite");
      const copied = await copyFile(join(folder, name), join(path, name), { signal, isOpenDatabase });
      files.push({ name, ...copied });
    }
    return files;
  } finally {
    await release?.();
  }
}

async function checkSpace(
  path: string,
  { folder, names }: { readonly folder: string; readonly names: readonly string[] },
): Promise<void> {
  const files = await Promise.all(names.map((name) => stat(join(folder, name))));
  const needed = files.reduce((sum, { size }) => sum + size, spareBytes);
  const { bavail, bsize } = await statfs(path);
  if (bavail * bsize >= needed) return;
  throw new Error(`${path} has ${bavail * bsize} bytes free, and the backup needs ${needed}.`);
}

async function writeManifest(path: string, manifest: Manifest): Promise<void> {
  const unfinished = join(path, unfinishedManifest);
  await writeFile(unfinished, formatManifest(manifest), { flush: true });
  await rename(unfinished, join(path, manifestFile));
  await syncFolder(path);
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}
