import type { Clock } from "../../ports/clock.ts";

/** How long a publish over its quota waits for its refusal at least, in milliseconds. A client that tries again at once takes no more than that allows. */
const refusalHeldMsMin = 250;
/** How long it waits at most. */
export const refusalHeldMsMax = 500;
/** Part of a whole by which each refusal waits longer than the one before, so that any number in a row is spread evenly: the golden ratio. */
const spread = 0.618_034;
/** Refusals that wait at once, about 200 bytes each; further ones are answered at once. */
const heldMax = 2_000;

/** Answers refusals late, so that whoever tries again at once takes little time from others. */
export class HeldRefusals {
  readonly #clock: Pick<Clock, "after">;
  #held = 0;
  #share = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Calls `answer` in a later turn. False where too many wait, and it will not be called. */
  hold(answer: () => void): boolean {
    if (this.#held >= heldMax) return false;
    this.#held += 1;
    // Those that came at once must not come at once again: others would wait behind all of them.
    this.#share = (this.#share + spread) % 1;
    this.#clock.after(refusalHeldMsMin + this.#share * (refusalHeldMsMax - refusalHeldMsMin), () => {
      this.#held -= 1;
      answer();
    });
    return true;
  }
}
