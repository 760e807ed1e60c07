import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Ledger } from "../../ports/ledger.ts";

/** Makes a ledger accept no transaction while it is held. */
export class HeldLedger {
  #gate: Deferred<void> | undefined;
  #topic: string | undefined;
  #reached = createDeferred<void>();

  /** The `change` option of a {@link ConnectionWorld}. */
  readonly change = (ledger: Ledger): void => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (...order) => {
      const [batches] = order;
      const isMeant = this.#topic === undefined || batches.some(({ topic }) => topic === this.#topic);
      if (this.#gate !== undefined && isMeant) {
        this.#reached.resolve();
        await this.#gate.promise;
      }
      return append(...order);
    };
  };

  /** Resolves when a transaction waits. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  /** Holds only transactions with events of `topic`, if it is given. */
  hold(topic?: string): void {
    this.#topic = topic;
    this.#gate = createDeferred();
    this.#reached = createDeferred();
  }

  release(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }
}
