import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Ledger } from "../../ports/ledger.ts";

/** Makes a ledger accept no transaction while it is held. */
export class HeldLedger {
  #gate: Deferred<void> | undefined;
  #reached = createDeferred<void>();

  /** The `change` option of a {@link ConnectionWorld}. */
  readonly change = (ledger: Ledger): void => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (...order) => {
      if (this.#gate !== undefined) {
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

  hold(): void {
    this.#gate = createDeferred();
    this.#reached = createDeferred();
  }

  release(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }
}
