import type { Duplex } from "node:stream";
import { outboxBytesMax } from "./limits.ts";
import type { UnreadBytes } from "./memory.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  #isCorked = false;
  /** What goes with the next write to a client that does not read: one buffer takes less memory than packets of two bytes each. */
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
    const { writableLength, writableNeedDrain, writableEnded } = this.#stream;
    const waitingBytes = writableLength + this.#heldBytes;
    return waitingBytes < outboxBytesMax && (this.#shared.hasRoom || !writableNeedDrain) && !writableEnded;
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
    if (this.#held.length > 0 || this.#stream.writableNeedDrain) {
      this.#hold(bytes);
      return;
    }
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#stream.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#stream.uncork();
      });
    }
    this.#stream.write(bytes);
    if (this.#stream.writableNeedDrain) this.count();
  }

  #hold(bytes: Buffer): void {
    if (this.#held.length === 0) process.nextTick(() => this.#writeHeld());
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }

  #writeHeld(): void {
    const held = this.#held;
    if (held.length === 0 || this.#stream.writableEnded || this.#stream.destroyed) return;
    this.#held = [];
    this.#heldBytes = 0;
    this.#stream.write(Buffer.concat(held));
    this.count();
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
