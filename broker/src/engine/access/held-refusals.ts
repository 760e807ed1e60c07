import type { Clock } from "../../ports/clock.ts";

/** How long a publish over its quota waits for its refusal, in milliseconds. A client that tries again at once takes no more than that allows. */
export const refusalHeldMs = 250;
/** Refusals that wait at once, about 200 bytes each; further ones are answered at once. */
const heldMax = 2_000;

/** Answers refusals late, so that whoever tries again at once takes little time from others. */
export class HeldRefusals {
  readonly #clock: Pick<Clock, "after">;
  #held = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Calls `answer` in a later turn. False where too many wait, and it will not be called. */
  hold(answer: () => void): boolean {
    if (this.#held >= heldMax) return false;
    this.#held += 1;
    this.#clock.after(refusalHeldMs, () => {
      this.#held -= 1;
      answer();
    });
    return true;
  }
}
