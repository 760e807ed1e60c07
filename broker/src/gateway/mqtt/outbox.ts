import type { Duplex } from "node:stream";
import { outboxBytesMax } from "./limits.ts";

/** What leaves for a socket: all that is written in one turn goes in one write. */
export class Outbox {
  readonly #stream: Duplex;
  #isCorked = false;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /** Whether the client keeps up; once it does again, the stream says `drain`. */
  get hasRoom(): boolean {
    return this.#stream.writableLength < outboxBytesMax && !this.#stream.writableEnded;
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
    this.#stream.write(bytes);
  }
}
