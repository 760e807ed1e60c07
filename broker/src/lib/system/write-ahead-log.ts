import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";

/** What SQLite's write-ahead log beside a database holds, by sqlite.org/fileformat2.html#walformat. */
export interface LogState {
  /** Frames from the beginning that are as they were written; SQLite uses no others. */
  readonly whole: number;
  /** First byte of what is not as it was written though more was committed after it, or was said to be; undefined where nothing is. */
  readonly damagedAt: number | undefined;
}

const headerBytes = 32;
const frameHeaderBytes = 24;
/** Of the last digit: whether checksums are made of big-endian words. */
const magic = 0x377f0682;
/** Of the file that SQLite keeps beside the log while it is in use: where its header says how many frames are valid, and in which log. */
const indexHeaderBytes = 48;
const indexFramesAt = 16;
const indexSaltsAt = 32;

/**
 * Looks at the log beside a database that nobody has open, and changes nothing. SQLite takes what is damaged in a log for its end, without a
 * word, and then writes over what was behind it. An end that was torn as the machine went down is none of this: nothing was committed after it.
 */
export function inspectLog(database: string): LogState {
  const file = `${database}-wal`;
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes <= headerBytes) return { whole: 0, damagedAt: undefined };
  const handle = openSync(file, "r");
  try {
    const header = readAt(handle, 0, headerBytes);
    const isBig = (header.readUInt32BE(0) & 1) === 1;
    const sum = checksum(header.subarray(0, 24), [0, 0], isBig);
    const isHeader = header.readUInt32BE(0) >>> 1 === magic >>> 1 && isSame(sum, header, 24);
    if (!isHeader) return { whole: 0, damagedAt: 0 };
    return new LogWalk(handle, { header, isBig, bytes, indexed: indexedFrames(`${database}-shm`, header) }).run();
  } finally {
    closeSync(handle);
  }
}

type Sum = readonly [number, number];

interface Log {
  readonly header: Buffer;
  readonly isBig: boolean;
  readonly bytes: number;
  /** Frames that were committed, as far as is known from elsewhere. */
  readonly indexed: number;
}

class LogWalk {
  readonly #handle: number;
  readonly #log: Log;
  readonly #frameBytes: number;

  constructor(handle: number, log: Log) {
    this.#handle = handle;
    this.#log = log;
    this.#frameBytes = frameHeaderBytes + log.header.readUInt32BE(8);
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
    return { whole, damagedAt: isDamaged ? headerBytes + whole * this.#frameBytes : undefined };
  }

  /** Whether a transaction that ends at or behind a frame was followed by another one, so that it had been wholly written. */
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
    const { isBig } = this.#log;
    if (!this.#isOfLog(frame)) return false;
    const sum = checksum(frame.subarray(frameHeaderBytes), checksum(frame.subarray(0, 8), before, isBig), isBig);
    return isSame(sum, frame, 16);
  }

  /** A log that begins anew leaves frames of the one before behind its end. */
  #isOfLog(frame: Buffer): boolean {
    return frame.compare(this.#log.header, 16, 24, 8, 16) === 0;
  }

  #read(index: number): Buffer {
    return readAt(this.#handle, headerBytes + index * this.#frameBytes, this.#frameBytes);
  }
}

function sumOf(frame: Buffer): Sum {
  return [frame.readUInt32BE(16), frame.readUInt32BE(20)];
}

function isSame([first, second]: Sum, bytes: Buffer, at: number): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
}

function checksum(bytes: Buffer, [first, second]: Sum, isBig: boolean): Sum {
  let one = first;
  let two = second;
  for (let at = 0; at < bytes.length; at += 8) {
    one = (one + (isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)) + two) >>> 0;
    two = (two + (isBig ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)) + one) >>> 0;
  }
  return [one, two];
}

/** Written after the frames are synced; a process that is killed leaves it behind. It is told from a broken one by its copy. */
function indexedFrames(file: string, header: Buffer): number {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  if (bytes.length < 2 * indexHeaderBytes) return 0;
  const isWhole = bytes.compare(bytes, indexHeaderBytes, 2 * indexHeaderBytes, 0, indexHeaderBytes) === 0;
  const isOfLog = bytes.compare(header, 16, 24, indexSaltsAt, indexSaltsAt + 8) === 0;
  return isWhole && isOfLog ? readNative(bytes, indexFramesAt) : 0;
}

/** Of the machine that the process ran on. */
function readNative(bytes: Buffer, at: number): number {
  return new Uint32Array(Uint8Array.from(bytes.subarray(at, at + 4)).buffer)[0] ?? 0;
}

function readAt(handle: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const read = readSync(handle, bytes, 0, length, position);
  return read === length ? bytes : bytes.subarray(0, read);
}
