import { createHash } from "node:crypto";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { BackupFile } from "./manifest.ts";
import { unlessStuck } from "./unless-stuck.ts";

/** Bytes copied per step; between steps, the broker serves its clients. */
const stepBytesMax = 256 * 1024;

export interface CopyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether SQLite may have the file open in this process. */
  readonly isOpenDatabase?: boolean;
}

/**
 * Copies a file to a new one that only its owner may read, syncs the new file to disk, and returns its length and digest.
 * @throws the system's error, such as EEXIST if the new file exists; the reason of `signal`.
 */
export async function copyFile(
  from: string,
  to: string,
  { signal, isOpenDatabase = false }: CopyOptions = {},
): Promise<Pick<BackupFile, "bytes" | "sha256">> {
  if (isOpenDatabase) return copyFrom({ source: await openForGood(from), from }, to, signal);
  const source = await openUnlessStuck(open(from, "r"), signal);
  return closing(source, { path: from, signal }, () => copyFrom({ source, from }, to, signal));
}

/**
 * Databases that were copied while this process had them open, by path. Closing any descriptor of a file would end all locks that the process has on the
 * file (POSIX), and so SQLite's. Another program could then open the database and delete the log that this process writes.
 */
const openDatabases = new Map<string, FileHandle>();

/** Opens a file once for all copies, until the process ends. */
async function openForGood(path: string): Promise<FileHandle> {
  const known = openDatabases.get(path);
  if (known !== undefined && (await isAt(known, path))) return known;
  const opened = await open(path, "r");
  openDatabases.set(path, opened);
  await known?.close(); // Of a file that is no longer there.
  return opened;
}

async function isAt(handle: FileHandle, path: string): Promise<boolean> {
  const [own, there] = await Promise.all([handle.stat(), stat(path)]);
  return own.ino === there.ino && own.dev === there.dev;
}

/**
 * Waits for a file to open. If the file opens only after the wait has failed, closes it: from Node.js 26 on, an open file that nobody closes ends the process.
 */
async function openUnlessStuck(opening: Promise<FileHandle>, signal: AbortSignal | undefined): Promise<FileHandle> {
  try {
    return await unlessStuck(opening, signal);
  } catch (error) {
    void opening.then((late) => late.close()).catch(() => {});
    throw error;
  }
}

interface Source {
  readonly source: FileHandle;
  readonly from: string;
}

async function copyFrom(
  { source, from }: Source,
  to: string,
  signal: AbortSignal | undefined,
): Promise<Pick<BackupFile, "bytes" | "sha256">> {
  const target = await openUnlessStuck(open(to, "wx", 0o600), signal);
  return closing(target, { path: to, signal }, async () => {
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const step of stepsOf({ source, from })) {
      signal?.throwIfAborted();
      hash.update(step);
      await unlessStuck(naming(to, target.writeFile(step)), signal);
      bytes += step.length;
    }
    await unlessStuck(naming(to, target.sync()), signal);
    return { bytes, sha256: hash.digest("hex") };
  });
}

/** Closes a file after `use`. @throws what `use` throws, which says more than a failure to close the file afterwards. */
export async function closing<Result>(
  handle: Pick<FileHandle, "close">,
  { path, signal }: { readonly path: string; readonly signal?: AbortSignal | undefined },
  use: () => Promise<Result>,
): Promise<Result> {
  const close = (): Promise<void> => unlessStuck(naming(path, handle.close()), signal);
  let result: Result;
  try {
    result = await use();
  } catch (error) {
    await close().catch(() => {});
    throw error;
  }
  await close();
  return result;
}

/** Yields the same memory each time: the caller uses a step before it asks for the next. */
async function* stepsOf({ source, from }: Source): AsyncIterable<Buffer> {
  const buffer = Buffer.allocUnsafe(stepBytesMax);
  for (let at = 0; ; ) {
    const { bytesRead } = await naming(from, source.read(buffer, 0, buffer.length, at));
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The system does not name an open file in its errors, such as for a full disk. */
export async function naming<Result>(path: string, operation: Promise<Result>): Promise<Result> {
  try {
    return await operation;
  } catch (cause) {
    throw new Error(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
