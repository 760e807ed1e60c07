import type { Duplex } from "node:stream";
import { outboxBytesMax } from "./limits.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  #isCorked = false;
  #writtenBytes = 0;
  /** Of these, what had left when {@link hasMoved} was last asked. */
  #takenBytes = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /** Whether the client keeps up; once it does again, the stream says `drain`. */
  get hasRoom(): boolean {
    return this.#stream.writableLength < outboxBytesMax && !this.#stream.writableEnded;
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
  }
}
