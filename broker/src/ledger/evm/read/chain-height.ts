import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { behind } from "../registry/settle-registry.ts";

export interface ChainHeightOptions {
  readonly clock: Clock;
  /** The block that the endpoint named last as its newest. */
  readonly head: () => number;
  /** The newest block that was read, now or by an earlier run. */
  readonly reached: () => number;
}

/** Sees when the chain is lower than what was read of it, which it never is for long unless its node is behind or has lost its state. */
export class ChainHeight {
  readonly #options: ChainHeightOptions;
  #since: number | undefined;

  constructor(options: ChainHeightOptions) {
    this.#options = options;
  }

  /** To be called at every head, so that it is known since when. */
  look(): Outage | undefined {
    const { head, reached, clock } = this.#options;
    if (head() >= reached()) {
      this.#since = undefined;
      return undefined;
    }
    this.#since ??= clock.monotonic();
    return { reason: behind(head(), reached()), since: this.#since };
  }
}
