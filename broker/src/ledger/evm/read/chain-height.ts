import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { behind } from "../registry/settle-registry.ts";

export interface ChainHeightOptions {
  readonly clock: Clock;
  /** The block that the endpoint named last. */
  readonly head: () => number;
  /** The newest block that this or an earlier run read. */
  readonly reached: () => number;
}

/** Detects a chain that is shorter than the blocks already read: the chain node lags, or lost its state. */
export class ChainHeight {
  readonly #options: ChainHeightOptions;
  #since: number | undefined;

  constructor(options: ChainHeightOptions) {
    this.#options = options;
  }

  /** The outage while the chain is shorter; undefined otherwise. Call it at every head, since the first call in an outage records when the outage began. */
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
