import type { Duplex } from "node:stream";
import { outboxBytesMax } from "./limits.ts";
import type { UnreadBytes } from "./memory.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  #isCorked = false;
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
    return writableLength < outboxBytesMax && (this.#shared.hasRoom || !writableNeedDrain) && !writableEnded;
  }

  /** Whether the client has taken anything since this was last asked. */
  hasMoved(): boolean {
    const taken = this.#writtenBytes - this.#stream.writableLength;
    const hasMoved = taken > this.#takenBytes;
    this.#takenBytes = taken;
    return hasMoved;
  }

  write(bytes: Buffer): void {
    if (this.#stream.writableEnded || this.#stream.destroyed) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#stream.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#stream.uncork();
      });
    }
    this.#writtenBytes += bytes.length;
    this.#stream.write(bytes);
    if (this.#stream.writableNeedDrain) this.count();
  }

  /** Counts what waits against what all connections share; to be called with each `drain` too. */
  count(): void {
    const { writableNeedDrain, writableLength } = this.#stream;
    this.#setCounted(writableNeedDrain ? writableLength : 0);
  }

  /** What waits is given up. */
  close(): void {
    this.#setCounted(0);
  }

  #setCounted(bytes: number): void {
    this.#shared.add(bytes - this.#countedBytes);
    this.#countedBytes = bytes;
  }
}
