import type { PendingTransaction } from "./pending-transaction.ts";

/** Transactions that wait for a nonce, in the order of the calls. */
export class TransactionQueue {
  #waiting: PendingTransaction[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  all(): readonly PendingTransaction[] {
    return this.#waiting;
  }

  /** Inserts a transaction behind those of all earlier calls, even if it lost a nonce and is signed again. */
  add(pending: PendingTransaction): void {
    const at = this.#waiting.findLastIndex(({ order }) => order < pending.order) + 1;
    this.#waiting.splice(at, 0, pending);
  }

  shift(): PendingTransaction | undefined {
    return this.#waiting.shift();
  }

  remove(pending: PendingTransaction): void {
    this.#waiting = this.#waiting.filter((other) => other !== pending);
  }
}
