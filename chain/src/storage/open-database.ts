import { closeSync, existsSync, openSync, type Stats, statSync } from "node:fs";
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { ChainFileError } from "../chain-file-error.ts";
import { BUSY_TIME_MS_MAX, LOG_BYTES_MAX } from "../limits.ts";
import { guardCalls, type NativeCalls } from "../native-calls.ts";

/** A database, and the lock that keeps other processes from writing it. */
export interface OwnedDatabase {
  readonly database: DatabaseSyncInstance;
  /** Length of the write-ahead log, in bytes. */
  logBytes(): number;
  /** Whether the file was moved, deleted or replaced since the opening: what lies beside its path then belongs to another chain. */
  isMoved(): boolean;
  close(options?: CloseOptions): void;
}

export interface CloseOptions {
  /** Leaves the file and its log as they are, for a chain that is damaged or not checked yet. */
  readonly keepsLog?: boolean;
}

/**
 * Opens the file for writing, for one chain alone. Threads of this process may read it meanwhile, so the database itself is not locked. Instead, SQLite's
 * exclusive mode on a lock file beside it holds a lock of the operating system. The lock ends with the process, however the process ends.
 */
export async function openDatabase(file: string, calls: NativeCalls): Promise<OwnedDatabase> {
  const lock = isInMemory(file) ? undefined : await openLocked(file, calls);
  let guard: DatabaseSyncInstance | undefined;
  try {
    if (!isInMemory(file)) createPrivately(file);
    guard = await openGuard(file, calls);
    const statements = [
      `PRAGMA busy_timeout = ${BUSY_TIME_MS_MAX};`,
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;",
      // Truncates a log that starts over, so that its length shows how much was written since. Keeps this much, because overwriting syncs faster than growing.
      `PRAGMA journal_size_limit = ${LOG_BYTES_MAX / 2};`,
      "BEGIN IMMEDIATE; COMMIT;",
    ];
    const database = await openConfigured(file, statements, { calls });
    const logBytes = (): number => sizeOf(`${file}-wal`);
    const opened = statSync(file, { throwIfNoEntry: false });
    const isMoved = (): boolean => opened !== undefined && !isSame(opened, statSync(file, { throwIfNoEntry: false }));
    return { database, logBytes, isMoved, close: (options) => closeAll({ database, guard, lock }, options) };
  } catch (cause) {
    if (guard !== undefined) closeGuard(guard);
    lock?.close();
    throw cause;
  }
}

/** Opens the file of a running chain for reading in another thread. */
export async function openForReading(file: string, calls: NativeCalls): Promise<DatabaseSyncInstance> {
  if (isInMemory(file)) throw new ChainFileError("A chain in memory has no file that another thread could read.");
  return openConfigured(file, [`PRAGMA busy_timeout = ${BUSY_TIME_MS_MAX};`], { calls, readOnly: true });
}

export function isInMemory(file: string): boolean {
  return file === ":memory:";
}

/**
 * Creates the file, if it is missing, so that only its owner may read it: it has every event. SQLite gives the log the same permissions. Never opens an existing
 * file: closing it again would end all locks that SQLite has on it in this process (POSIX).
 */
function createPrivately(file: string): void {
  if (existsSync(file)) return;
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (cause) {
    throw explainOpening(file, cause);
  }
}

async function openLocked(file: string, calls: NativeCalls): Promise<DatabaseSyncInstance> {
  const lockFile = `${file}-lock`;
  const lock = await openFile(lockFile, { calls });
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock.close();
    if (isDamaged(messageOf(cause))) {
      throw new ChainFileError(`The lock ${lockFile} is damaged. It holds nothing: delete it while no broker runs.`, {
        cause,
      });
    }
    throw explainOpening(file, cause);
  }
}

/** The size of a file in bytes; 0 if it does not exist. */
function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function isSame(one: Stats, other: Stats | undefined): boolean {
  return one.dev === other?.dev && one.ino === other.ino;
}

interface OpenFiles {
  readonly database: DatabaseSyncInstance;
  readonly guard: DatabaseSyncInstance | undefined;
  readonly lock: DatabaseSyncInstance | undefined;
}

/** Open guards. Without a reference, garbage collection could close a guard before the writer. */
const guards = new Set<DatabaseSyncInstance>();

/**
 * Opens a guard: a reader that closes after the writer. The last connection to close copies the log into the file and deletes the log, but a reader does
 * neither. A new file needs no guard. Nor does a file whose creation was cut short: it has a rollback journal and no log, and only a writer may roll back.
 */
async function openGuard(file: string, calls: NativeCalls): Promise<DatabaseSyncInstance | undefined> {
  if (sizeOf(file) === 0) return undefined;
  if (sizeOf(`${file}-journal`) > 0 && sizeOf(`${file}-wal`) === 0) return undefined;
  const guard = await openConfigured(file, ["SELECT count(*) FROM sqlite_schema"], { calls, readOnly: true });
  guards.add(guard);
  return guard;
}

function closeGuard(guard: DatabaseSyncInstance): void {
  guards.delete(guard);
  guard.close();
}

/**
 * Releases the lock last: until then no other process may write. With `keepsLog`, the guard stays open until the thread ends, since statements that are not
 * garbage-collected yet keep the database open after its close. The end of a thread closes databases in reverse order of opening: the writer before the guard.
 */
function closeAll({ database, guard, lock }: OpenFiles, { keepsLog = false }: CloseOptions = {}): void {
  try {
    if (!keepsLog && guard !== undefined) closeGuard(guard);
    database.close();
  } finally {
    lock?.close();
  }
}

async function openConfigured(
  file: string,
  statements: readonly string[],
  options: OpenOptions,
): Promise<DatabaseSyncInstance> {
  const database = await openFile(file, options);
  try {
    for (const statement of statements) database.exec(statement);
    return database;
  } catch (cause) {
    database.close();
    throw explainOpening(file, cause);
  }
}

interface OpenOptions {
  /** The native calls of this thread: every call of the database runs as one. */
  readonly calls: NativeCalls;
  readonly readOnly?: boolean;
}

interface SqliteModule {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => DatabaseSyncInstance;
}

/** The first release line of Node.js in which every release has SQLite built in, without a flag. */
const NODE_MAJOR_MIN = 24;

async function openFile(file: string, { calls, readOnly = false }: OpenOptions): Promise<DatabaseSyncInstance> {
  const { DatabaseSync } = await loadSqlite();
  try {
    const database = calls.run(() => new DatabaseSync(file, { readOnly }));
    return guardCalls(database, calls);
  } catch (cause) {
    throw explainOpening(file, cause);
  }
}

/** Node's own SQLite, or a package with the same interface for older releases. */
async function loadSqlite(): Promise<SqliteModule> {
  const isNodeFit = Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN;
  const module: unknown = isNodeFit ? process.getBuiltinModule("node:sqlite") : await import("@photostructure/sqlite");
  return module as SqliteModule; // both have it, in the same shape
}

/** SQLite's SQLITE_IOERR_SHMSIZE: there is no space for the index of the write-ahead log, a file beside the database. */
const SHARED_INDEX_CANNOT_GROW = 4_874;

/** Says why the file cannot be opened. */
export function explainOpening(file: string, cause: unknown): ChainFileError {
  const words = messageOf(cause);
  if (/locked|busy/i.test(words)) {
    return new ChainFileError(
      `The chain file ${file} is in use by another process. Stop that process first, or use another file. If no process uses it, restore its folder from a backup.`,
      { cause },
    );
  }
  if (isDamaged(words)) {
    return new ChainFileError(
      `The file ${file} is not a chain, or it is damaged (${words}). Restore its folder from a backup.`,
      { cause },
    );
  }
  if (isDiskFull(cause)) return cannotGrow(file, cause);
  return new ChainFileError(
    `The chain file ${file} cannot be opened: ${words}. Check its owner, its mode and its disk; if it is damaged, restore its folder from a backup.`,
    { cause },
  );
}

/** Says why a running chain cannot use its file for now. */
export function explainFault(file: string, cause: unknown): ChainFileError {
  if (isDiskFull(cause)) return cannotGrow(file, cause);
  return new ChainFileError(
    `The chain file ${file} cannot be read or written: ${messageOf(cause)}. Check its disk, and that no other program uses the file.`,
    { cause },
  );
}

function isDiskFull(cause: unknown): boolean {
  return /disk is full/i.test(messageOf(cause)) || codeOf(cause) === SHARED_INDEX_CANNOT_GROW;
}

function cannotGrow(file: string, cause: unknown): ChainFileError {
  return new ChainFileError(
    `The chain file ${file} cannot grow, the disk is full (${messageOf(cause)}). Free some space.`,
    { cause },
  );
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "errcode" in error ? error.errcode : undefined;
}

function isDamaged(words: string): boolean {
  return /not a database|malformed|corrupt/i.test(words);
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
