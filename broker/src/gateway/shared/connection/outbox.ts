import type { Duplex } from "node:stream";
import { outboxBytesMax } from "./limits.ts";
import type { UnreadBytes } from "./memory.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  /** What goes with the next write, which copies it into one buffer: a write costs more than to copy many packets, and small buffers take more memory. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #writtenBytes = 0;
  /** Of these, what had left when {@link hasMoved} was last asked. */
  #takenBytes = 0;

  /** Of the shared bytes, those of this connection. */
  #countedBytes = 0;
  readonly #shared: UnreadBytes;

  constructor(stream: Duplex, shared: UnreadBytes) {
    this.#stream = stream;
    this.#shared = shared;
  }

  /** Whether the client keeps up; once it does again, the stream says `drain`. */
  get hasRoom(): boolean {
    const { writableLength, writableNeedDrain, writableHighWaterMark, writableEnded } = this.#stream;
    const waitingBytes = writableLength + this.#heldBytes;
    const isBehind = writableNeedDrain || this.#heldBytes >= writableHighWaterMark;
    return waitingBytes < outboxBytesMax && (this.#shared.hasRoom || !isBehind) && !writableEnded;
  }

  /** Bytes for the client so far, whether it has taken them or not. */
  get writtenBytes(): number {
    return this.#writtenBytes;
  }

  /** Whether the client has taken anything since this was last asked. */
  hasMoved(): boolean {
    const taken = this.#writtenBytes - this.#heldBytes - this.#stream.writableLength;
    const hasMoved = taken > this.#takenBytes;
    this.#takenBytes = taken;
    return hasMoved;
  }

  write(bytes: Buffer): void {
    if (this.#stream.writableEnded || this.#stream.destroyed) return;
    this.#writtenBytes += bytes.length;
    if (this.#held.length === 0) process.nextTick(() => this.#writeHeld());
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }

  #writeHeld(): void {
    const held = this.#held;
    const [first] = held;
    if (first === undefined || this.#stream.writableEnded || this.#stream.destroyed) return;
    this.#held = [];
    this.#heldBytes = 0;
    // A write that the system takes at once says no `drain`, for which those wait who saw no room; one from the stream's buffer does.
    this.#stream.cork();
    this.#stream.write(held.length === 1 ? first : Buffer.concat(held));
    this.#stream.uncork();
    if (this.#stream.writableNeedDrain) this.count();
  }

  /** Counts what waits against what all connections share; to be called with each `drain` too. */
  count(): void {
    const { writableNeedDrain, writableLength } = this.#stream;
    this.#setCounted(writableNeedDrain ? writableLength : 0);
  }

  /** To be called before the stream ends: what was held goes with it, and nothing counts any more. */
  close(): void {
    this.#writeHeld();
    this.#setCounted(0);
  }

  #setCounted(bytes: number): void {
    this.#shared.add(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
  }
}
