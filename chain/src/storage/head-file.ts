import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { type Hex, keccak256, toHex } from "@stele/eth/node";
import { HEAD_SYNC_INTERVAL_MS } from "../limits.ts";

/** The newest block of a chain at some time. */
export interface ChainEnd {
  readonly number: bigint;
  readonly hash: Hex;
}

/** The state of a head file; `accepted` if an operator wrote that the chain is right as it is. */
export type HeadFileState =
  | { readonly status: "missing" | "damaged" | "accepted" }
  | ({ readonly status: "intact" } & ChainEnd);

/** An operator writes this word into the file to continue with an earlier chain on purpose. Damage does not produce it. */
const acceptance = "accept";
const form = /^stele chain head 1\nblock (\d{20})\nhash (0x[0-9a-f]{64})\n/;
const numberDigits = 20;

/** Path of the head file of a chain's file. */
export function headFileOf(chainFile: string): string {
  return `${chainFile}-head`;
}

/** Reads the head file beside a chain's file, and changes nothing. */
export function readHeadFile(chainFile: string): HeadFileState {
  const text = tryRead(headFileOf(chainFile));
  if (text === undefined) return { status: "missing" };
  if (text.trim() === acceptance) return { status: "accepted" };
  const [content = "", number = "", hash = ""] = form.exec(text) ?? [];
  // The content is not empty only if the pattern matched, with number and hash.
  return content !== "" && text === sealed(content)
    ? { status: "intact", number: BigInt(number), hash: hash as Hex }
    : { status: "damaged" };
}

/**
 * The number and hash of the newest block, in a file beside the chain's file. In a chain that lost its newest blocks, every hash is still right: only something
 * outside the chain's file and log shows the loss.
 *
 * The file is never ahead of the chain on disk: each block is synced before this file names the block. The file is never behind an announced block
 * either, unless the machine goes down or a write fails: the operating system keeps a write when the process is killed. Syncing each write would add a second
 * sync to every publish, so a sync follows within HEAD_SYNC_INTERVAL_MS. Therefore a power loss may leave the file that much behind. The write of the next
 * block makes up for a failed one. The record is shorter than a sector of a disk, which is written whole or not at all.
 */
export class HeadFile {
  readonly #chainFile: string;
  readonly #isMoved: () => boolean;
  #handle: number | undefined;
  #newest: Buffer | undefined;
  #sync: NodeJS.Timeout | undefined;

  /** `isMoved` says whether the chain's file is no longer at its path: a head file that is there then belongs to another chain. */
  constructor(chainFile: string, isMoved: () => boolean = () => false) {
    this.#chainFile = chainFile;
    this.#isMoved = isMoved;
  }

  /**
   * Call this before writing a block. If the file is missing or damaged, writes it durably with the block's parent, so that no chain with a block after
   * block 0 lacks the file. Cheap after the first call.
   * @throws Error if the chain's file has moved; what the file system throws.
   */
  prepare(parent: ChainEnd): void {
    if (this.#handle !== undefined) return;
    if (this.#isMoved()) throw new Error(`${this.#chainFile} was moved, deleted or replaced`);
    this.#ensure(parent);
    this.#handle = openSync(headFileOf(this.#chainFile), "r+");
  }

  /** Call this once a block is synced, before announcing it. Does nothing before {@link prepare}. */
  write(head: ChainEnd): void {
    if (this.#handle === undefined) return;
    this.#newest = encode(head);
    try {
      writeSync(this.#handle, this.#newest, 0, undefined, 0);
    } catch {
      return; // The block is on disk, and the file may be behind. The next block tries again, and `settle` throws if its write fails too.
    }
    this.#sync ??= setTimeout(() => this.#syncLater(), HEAD_SYNC_INTERVAL_MS).unref();
  }

  /**
   * Call this at a clean stop. If this process made blocks, writes the newest one again and syncs the file. Otherwise writes `head` if the file is not intact.
   * @throws what the file system throws.
   */
  settle(head: ChainEnd): void {
    if (this.#handle === undefined || this.#newest === undefined) return this.#ensure(head);
    writeSync(this.#handle, this.#newest, 0, undefined, 0);
    fdatasyncSync(this.#handle);
  }

  /** Closes the file, and leaves it as it is. */
  close(): void {
    clearTimeout(this.#sync);
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }

  #ensure(head: ChainEnd): void {
    if (readHeadFile(this.#chainFile).status !== "intact") replaceDurably(headFileOf(this.#chainFile), encode(head));
  }

  /** Syncs the file; blocks do not wait for this. If the sync fails, the next one follows a later block. */
  #syncLater(): void {
    this.#sync = undefined;
    if (this.#handle !== undefined) fdatasync(this.#handle, () => undefined);
  }
}

function encode({ number, hash }: ChainEnd): Buffer {
  const content = `stele chain head 1\nblock ${String(number).padStart(numberDigits, "0")}\nhash ${hash}\n`;
  return Buffer.from(sealed(content));
}

function sealed(content: string): string {
  return `${content}check ${toHex(keccak256(Buffer.from(content)))}\n`;
}

/** Replaces the file atomically: a crash leaves the old content or the new one. */
function replaceDurably(file: string, content: Buffer): void {
  const unfinished = `${file}.unfinished`;
  writeFileSync(unfinished, content, { mode: 0o600, flush: true });
  renameSync(unfinished, file);
  if (process.platform === "win32") return; // Folders cannot be synced there.
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function tryRead(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if ("code" in error && error.code === "ENOENT") return undefined;
    throw new Error(`the chain's head file ${file} cannot be read: ${error.message}`, { cause: error });
  }
}
