import { Duplex } from "node:stream";

/** A socket whose client reads only when the test says so. */
export class StalledSocket extends Duplex {
  readonly received: Buffer[] = [];
  /** Number of writes by the outbox. */
  chunks = 0;
  #resume: (() => void) | undefined;
  #isReading = false;

  constructor() {
    super({ writableHighWaterMark: 64 });
  }

  startReading(): void {
    this.#isReading = true;
    this.#resume?.();
  }

  override write(chunk: Buffer, callback?: unknown): boolean {
    this.chunks += 1;
    return super.write(chunk, callback as () => void); // as the outbox calls it
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.received.push(chunk);
    if (this.#isReading) callback();
    else this.#resume = callback;
  }

  override _read(): void {}
}
