import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { describeFileError } from "./file-owner.ts";
import {
  checksum,
  frameHeaderBytes,
  headerBefore,
  headerBytes,
  isBigEndian,
  isHeader,
  isSame,
  type Sum,
  sumOf,
} from "./write-ahead-log-header.ts";

/** State of SQLite's write-ahead log beside a database, by sqlite.org/fileformat2.html#walformat. */
export interface LogState {
  /** Number of intact frames from the beginning; SQLite uses no others. */
  readonly whole: number;
  /** Offset of the first damaged frame, or 0 for the header, if SQLite would lose commits from there on; else undefined. */
  readonly damagedAt: number | undefined;
}

/** Offset of the page size in a database file; the value 1 stands for 65,536. */
const pageBytesAt = 16;
/** The log's index, a file `-shm` that SQLite keeps beside the log: length of its header, offset of the number of valid frames, and of the log's salts. */
const indexHeaderBytes = 48;
const indexFramesAt = 16;
const indexSaltsAt = 32;

/**
 * Inspects the log beside a database that nobody has open, and changes nothing. SQLite silently treats the first damaged frame as the end of the
 * log, and later overwrites the frames after it. An end that was torn by a power loss is not damage: nothing was committed after it.
 *
 * SQLite ignores the whole log if its header is invalid. A power loss can leave an invalid header when SQLite restarts the log: it overwrites the
 * header and syncs it before the first new frame. It does so only after a checkpoint has copied the old log and synced the database, so the database
 * file has all old frames. Rule: if the newest committed frame of every page equals that page in the database file, the database reads the same with
 * the log and without it, so nothing is lost, whatever the header was. Otherwise SQLite would drop commits: damage.
 */
export function inspectLog(database: string): LogState {
  const file = `${database}-wal`;
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes <= headerBytes) return { whole: 0, damagedAt: undefined };
  return reading(file, (opened) => {
    const walk = (header: Buffer): LogWalk =>
      new LogWalk(opened, { header, bytes, indexed: indexedFrames(`${database}-shm`, header) });
    const header = readAt(opened, 0, headerBytes);
    if (isHeader(header)) return walk(header).run();
    const lost = headerBefore(readAt(opened, headerBytes, frameHeaderBytes + pageBytesOf(database)));
    return { whole: 0, damagedAt: lost !== undefined && isCopied(walk(lost), database) ? undefined : 0 };
  });
}

/** Whether the log has commits and no damage after its header, and the database file holds the newest committed content of every page. */
function isCopied(log: LogWalk, database: string): boolean {
  const { whole, damagedAt } = log.run();
  const pages = [...log.committedPages(whole)];
  if (damagedAt !== undefined || pages.length === 0) return false;
  return reading(database, (opened) =>
    pages.every(([page, frame]) => {
      const content = log.contentOf(frame);
      return readAt(opened, (page - 1) * content.length, content.length).equals(content);
    }),
  );
}

/** Page size of a database, in bytes; 0 if the database is missing or empty. */
function pageBytesOf(database: string): number {
  if (!existsSync(database)) return 0;
  const given = reading(database, (opened) => readAt(opened, pageBytesAt, 2));
  if (given.length < 2) return 0;
  return given.readUInt16BE(0) === 1 ? 65_536 : given.readUInt16BE(0);
}

interface Log {
  readonly header: Buffer;
  readonly bytes: number;
  /** Number of committed frames according to the log's index; 0 if the index does not tell. */
  readonly indexed: number;
}

class LogWalk {
  readonly #opened: Opened;
  readonly #log: Log;
  readonly #frameBytes: number;
  readonly #isBig: boolean;

  constructor(opened: Opened, log: Log) {
    this.#opened = opened;
    this.#log = log;
    this.#frameBytes = frameHeaderBytes + log.header.readUInt32BE(8);
    this.#isBig = isBigEndian(log.header);
  }

  run(): LogState {
    const { header, bytes, indexed } = this.#log;
    const frames = Math.floor((bytes - headerBytes) / this.#frameBytes);
    let sum: Sum = [header.readUInt32BE(24), header.readUInt32BE(28)];
    let whole = 0;
    for (; whole < frames; whole += 1) {
      const frame = this.#read(whole);
      if (!this.#fits(frame, sum)) break;
      sum = sumOf(frame);
    }
    const isDamaged = whole < indexed || this.#isCommittedBehind(whole, frames);
    return { whole, damagedAt: isDamaged ? this.#positionOf(whole) : undefined };
  }

  /** Maps each page that the database has at the last commit in the first `whole` frames to the page's newest frame up to that commit. */
  committedPages(whole: number): ReadonlyMap<number, number> {
    const headers = Array.from({ length: whole }, (_, index) =>
      readAt(this.#opened, this.#positionOf(index), frameHeaderBytes),
    );
    const last = headers.findLastIndex((header) => header.readUInt32BE(4) > 0);
    const pages = headers[last]?.readUInt32BE(4) ?? 0;
    const newest = headers.slice(0, last + 1).map((header, index) => [header.readUInt32BE(0), index] as const);
    return new Map(newest.filter(([page]) => page <= pages));
  }

  contentOf(index: number): Buffer {
    return this.#read(index).subarray(frameHeaderBytes);
  }

  /** Whether another transaction follows one that ends at frame `first` or later: then SQLite had written the earlier transaction completely. */
  #isCommittedBehind(first: number, frames: number): boolean {
    let hasEnded = false;
    for (let index = first; index < frames; index += 1) {
      const frame = this.#read(index);
      if (hasEnded && this.#fits(frame, sumOf(this.#read(index - 1)))) return true;
      hasEnded ||= this.#isOfLog(frame) && frame.readUInt32BE(4) > 0;
    }
    return false;
  }

  #fits(frame: Buffer, before: Sum): boolean {
    if (!this.#isOfLog(frame) || frame.readUInt32BE(0) === 0) return false;
    const begun = checksum(frame.subarray(0, 8), before, this.#isBig);
    const sum = checksum(frame.subarray(frameHeaderBytes), begun, this.#isBig);
    return isSame(sum, frame, 16);
  }

  /** Compares the salts: after SQLite restarts a log, frames of the old log remain after the new end. */
  #isOfLog(frame: Buffer): boolean {
    return frame.compare(this.#log.header, 16, 24, 8, 16) === 0;
  }

  #read(index: number): Buffer {
    return readAt(this.#opened, this.#positionOf(index), this.#frameBytes);
  }

  #positionOf(index: number): number {
    return headerBytes + index * this.#frameBytes;
  }
}

/** Reads the number of committed frames from the log's index, which SQLite writes after it syncs the frames. The two copies of its header must match. */
function indexedFrames(file: string, header: Buffer): number {
  const bytes = existsSync(file) ? naming(file, () => readFileSync(file)) : Buffer.alloc(0);
  if (bytes.length < 2 * indexHeaderBytes) return 0;
  const copiesMatch = bytes.compare(bytes, indexHeaderBytes, 2 * indexHeaderBytes, 0, indexHeaderBytes) === 0;
  const isOfLog = bytes.compare(header, 16, 24, indexSaltsAt, indexSaltsAt + 8) === 0;
  return copiesMatch && isOfLog ? readNative(bytes, indexFramesAt) : 0;
}

/** Reads a number in the byte order of this machine, as SQLite wrote it. */
function readNative(bytes: Buffer, at: number): number {
  return new Uint32Array(Uint8Array.from(bytes.subarray(at, at + 4)).buffer)[0] ?? 0;
}

interface Opened {
  readonly file: string;
  readonly handle: number;
}

function reading<T>(file: string, use: (opened: Opened) => T): T {
  const handle = naming(file, () => openSync(file, "r"));
  try {
    return use({ file, handle });
  } finally {
    closeSync(handle);
  }
}

function readAt({ file, handle }: Opened, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const read = naming(file, () => readSync(handle, bytes, 0, length, position));
  return read === length ? bytes : bytes.subarray(0, read);
}

/** @throws Error that names the file: the system does not, if it is open. */
function naming<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${describeFileError(file, cause)}`, { cause });
  }
}
