import type { Clock } from "../../ports/clock.ts";

/** Shortest wait, in milliseconds, before a publish over its quota is refused. It bounds how often a client that retries at once can retry. */
const refusalHeldMsMin = 250;
/** Longest wait before a publish over its quota is refused, in milliseconds. */
export const refusalHeldMsMax = 500;
/** Each refusal waits this share of the range longer than the one before, modulo 1: multiples of the golden ratio are spread evenly. */
const spread = 0.618_034;
/** Maximum number of refusals that wait, about 200 bytes each; further ones are answered at once. */
const heldMax = 2_000;

/** Delays refusals, so that a client that retries at once takes little time from others. */
export class HeldRefusals {
  readonly #clock: Pick<Clock, "after">;
  #held = 0;
  #share = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Calls `answer` later. Returns false, and never calls it, if too many refusals wait. */
  hold(answer: () => void): boolean {
    if (this.#held >= heldMax) return false;
    this.#held += 1;
    // Clients that were refused together must not retry together: other clients would wait for all of them.
    this.#share = (this.#share + spread) % 1;
    this.#clock.after(refusalHeldMsMin + this.#share * (refusalHeldMsMax - refusalHeldMsMin), () => {
      this.#held -= 1;
      answer();
    });
    return true;
  }
}
