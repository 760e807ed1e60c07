import type { PendingTransaction } from "./pending-transaction.ts";

/** What waits for a nonce, in the order of the calls. */
export class TransactionQueue {
  #waiting: PendingTransaction[] = [];

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  all(): readonly PendingTransaction[] {
    return this.#waiting;
  }

  /** Puts it behind those that were asked for before it, also when it was signed already and has to be signed anew. */
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
