import type { Clock } from "../../ports/clock.ts";

/** Shortest wait before the broker refuses a publish over its quota, in milliseconds. It bounds the rate of a client that retries at once. */
const refusalHeldMsMin = 250;
/** Longest wait before the broker refuses a publish over its quota, in milliseconds. */
export const refusalHeldMsMax = 500;
/** Each refusal waits longer than the one before by this share of the range, modulo 1. Multiples of the golden ratio are spread evenly. */
const spread = 0.618_034;
/** Maximum number of refusals that wait, about 200 bytes each; further ones are answered at once. */
const heldMax = 2_000;

/** Delays refusals, so that a client that retries at once costs other clients little. */
export class HeldRefusals {
  readonly #clock: Pick<Clock, "after">;
  #held = 0;
  #share = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Calls `answer` after a wait, or at the end of this turn if too many refusals wait. */
  hold(answer: () => void): void {
    if (this.#held >= heldMax) return queueMicrotask(answer);
    this.#held += 1;
    // Clients that were refused together must not retry together: other clients would wait for all of them.
    this.#share = (this.#share + spread) % 1;
    this.#clock.after(refusalHeldMsMin + this.#share * (refusalHeldMsMax - refusalHeldMsMin), () => {
      this.#held -= 1;
      answer();
    });
  }
}
