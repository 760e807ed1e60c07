import { Readable } from "node:stream";
import { answerSliceBytes } from "../limits.ts";
import type { Holding } from "./memory-budget.ts";

/** A long answer, written in slices as fast as the client reads. The stream does not count its memory: its creator must count `bytes` in `holding`. */
export class AnswerStream extends Readable {
  readonly bytes: number;
  readonly holding: Holding;
  /** Parts not sent yet, in reverse order. */
  readonly #parts: Buffer[];
  #sliceBytes = 0;

  constructor(parts: readonly Buffer[], holding: Holding) {
    super({ highWaterMark: answerSliceBytes });
    this.bytes = parts.reduce((sum, { length }) => sum + length, 0);
    this.holding = holding;
    this.#parts = parts.toReversed();
  }

  override _read(): void {
    if (this.#sliceBytes > 0) this.holding.moved(this.#sliceBytes);
    const slice = this.#takeSlice();
    this.#sliceBytes = slice.length;
    this.push(slice.length === 0 ? null : slice);
  }

  #takeSlice(): Buffer {
    const taken: Buffer[] = [];
    let room = answerSliceBytes;
    for (let part = this.#parts.pop(); part !== undefined; part = room > 0 ? this.#parts.pop() : undefined) {
      taken.push(part.subarray(0, room));
      if (part.length > room) this.#parts.push(part.subarray(room));
      room -= Math.min(room, part.length);
    }
    const [first] = taken;
    return first !== undefined && taken.length === 1 ? first : Buffer.concat(taken);
  }
}
