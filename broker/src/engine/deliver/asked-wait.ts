import type { Failure } from "../../domain/subscription.ts";
import { retryAfterMsMax } from "../../lib/retry-after.ts";
import type { Clock } from "../../ports/clock.ts";

/** The wait that a receiver asked for. It delays every event of the subscription. */
export class AskedWait {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  /** In milliseconds of the monotonic clock. */
  #until = 0;

  /** `retryAt` is the stored end of a wait. Bounded, because it may come from an earlier run, or from a node with another clock. */
  constructor(clock: Pick<Clock, "now" | "monotonic">, retryAt: number) {
    this.#clock = clock;
    this.ask(Math.min(retryAt - clock.now(), retryAfterMsMax));
  }

  /** Several requests may be in progress at once, and each answer may ask for another wait: the longest counts. */
  ask(waitMs: number): void {
    this.#until = Math.max(this.#until, this.#clock.monotonic() + waitMs);
  }

  end(): void {
    this.#until = 0;
  }

  /** Whole milliseconds that are left; at most 0 if the wait is over. */
  get leftMs(): number {
    return Math.ceil(this.#until - this.#clock.monotonic()); // The monotonic clock has fractions.
  }

  /** The failure of the next event as the store must keep it: an event that no attempt has tried must wait too, even after a restart or at another node. */
  addTo(failure: Failure): Failure {
    const { leftMs } = this;
    return leftMs > 0 ? { ...failure, retryAt: Math.max(failure.retryAt, this.#clock.now() + leftMs) } : failure;
  }
}
