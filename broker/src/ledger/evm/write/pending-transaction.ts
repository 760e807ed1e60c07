import type { BrokerError } from "@stele/wire";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { Inclusion, TransactionState, TransactionTooLarge } from "./transaction-state.ts";
import { type Effect, type TransactionEvent, transition } from "./transaction-transition.ts";

/** When a transaction was requested, and when it is checked, in milliseconds of the monotonic clock. */
export interface PendingPlace {
  readonly at: number;
  /** Since when this process tracks it, if it comes from the journal; else since `at`. */
  readonly trackedSince?: number;
  /** Its position among the calls; 0 if it comes from the journal. */
  readonly order: number;
  readonly lookUpAt: number;
}

/**
 * A transaction with its caller. The caller's wait ends with an answer, at the latest at its deadline. The transaction itself is tracked until its
 * fate can no longer change.
 */
export class PendingTransaction {
  readonly at: number;
  readonly trackedSince: number;
  readonly order: number;
  /** When to ask for its receipt unless its logs arrive earlier. */
  lookUpAt: number;
  /** Ends the deadline and the abort listener. */
  release: () => void = () => {};
  #state: TransactionState;
  readonly #outcome: Deferred<Inclusion> = createDeferred<Inclusion>();

  constructor(state: TransactionState, { at, trackedSince = at, order, lookUpAt }: PendingPlace) {
    this.#state = state;
    this.at = at;
    this.trackedSince = trackedSince;
    this.order = order;
    this.lookUpAt = lookUpAt;
  }

  get state(): TransactionState {
    return this.#state;
  }

  get outcome(): Promise<Inclusion> {
    return this.#outcome.promise;
  }

  apply(event: TransactionEvent): readonly Effect[] {
    const { state, effects } = transition(this.#state, event);
    this.#state = state;
    return effects;
  }

  resolve(inclusion: Inclusion): void {
    if (this.#answer()) this.#outcome.resolve(inclusion);
  }

  reject(error: BrokerError | TransactionTooLarge): void {
    if (this.#answer()) this.#outcome.reject(error);
  }

  #answer(): boolean {
    if (this.#state.isAnswered) return false;
    this.apply({ kind: "answered" });
    this.release();
    return true;
  }
}
