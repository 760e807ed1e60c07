import { BrokerError } from "@stele/wire";
import { allowManyListeners } from "../../lib/cancellation.ts";
import type { Clock } from "../../ports/clock.ts";

/** Time for an attempt in progress, in milliseconds, once the broker stops. */
const attemptGraceMs = 1_000;

/** `stopping`: the order begins no further attempt. `aborting`: it aborts the attempt in progress. */
export interface OrderSignals {
  readonly stopping: AbortSignal;
  readonly aborting: AbortSignal;
}

/** Orders that call receivers or remove dead letters. A stop ends them while the store is still open. */
export class RunningOrders {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #aborting = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    for (const { signal } of [this.#stopping, this.#aborting]) allowManyListeners(signal); // All orders share them.
  }

  /** @throws BrokerError 200300 if the broker is stopping; the order does not run. */
  async run<Result>(order: (signals: OrderSignals) => Promise<Result>): Promise<Result> {
    if (this.#stopping.signal.aborted) throw stoppingError();
    const running = order({ stopping: this.#stopping.signal, aborting: this.#aborting.signal });
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Refuses further orders and waits for the running ones. Attempts in progress get a second, but at most `graceMs` milliseconds. Never rejects. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    const cancel = this.#clock.after(Math.min(attemptGraceMs, graceMs), () => this.#aborting.abort());
    await Promise.allSettled(this.#running);
    cancel();
  }
}

export function stoppingError(): BrokerError {
  return new BrokerError("busy", { details: "the broker is stopping" });
}
