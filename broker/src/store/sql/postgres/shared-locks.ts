import type { Transaction } from "kysely";
import { SharedCalls } from "../../../lib/shared-calls.ts";
import type { Schema } from "../schema.ts";
import { StoreError } from "../store-error.ts";
import { tryToShare } from "./sharing.ts";

/** Another transaction holds a lock. The call can be repeated once `freed` resolves. */
export class LockHeldError extends StoreError {
  /** Resolves when the lock is free. @throws StoreError if that takes too long. */
  readonly freed: () => Promise<void>;

  constructor(message: string, freed: () => Promise<void>) {
    super("lock-timeout", message);
    this.freed = freed;
  }
}

export interface SharedLocksOptions {
  /** Name of the database in messages. */
  readonly description: string;
  /** Waits on a connection until the lock is free. @throws StoreError if that takes too long. */
  readonly wait: (name: string) => Promise<void>;
}

/**
 * Takes locks in shared mode. All calls that meet a held lock wait on one connection together: a rollback of one group may hold its lock for long, and must
 * leave connections for the other groups.
 */
export class SharedLocks {
  readonly #options: SharedLocksOptions;
  readonly #waits = new SharedCalls<string, void>();

  constructor(options: SharedLocksOptions) {
    this.#options = options;
  }

  /** Takes the lock until the transaction ends. @throws LockHeldError if another transaction holds or awaits it exclusively. */
  async take(transaction: Transaction<Schema>, name: string): Promise<void> {
    if (await tryToShare(transaction, name)) return;
    const { description, wait } = this.#options;
    const freed = (): Promise<void> => this.#waits.run(name, () => wait(name));
    throw new LockHeldError(`${description} kept a change waiting too long for a lock`, freed);
  }
}
