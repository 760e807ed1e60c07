import type { Transaction } from "kysely";
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
  readonly #waits = new Map<string, Promise<void>>();

  constructor(options: SharedLocksOptions) {
    this.#options = options;
  }

  /** Takes the lock until the transaction ends. @throws LockHeldError if another transaction holds or awaits it exclusively. */
  async take(transaction: Transaction<Schema>, name: string): Promise<void> {
    if (await tryToShare(transaction, name)) return;
    const { description } = this.#options;
    throw new LockHeldError(`${description} kept a change waiting too long for a lock`, () => this.#freed(name));
  }

  #freed(name: string): Promise<void> {
    const known = this.#waits.get(name);
    if (known !== undefined) return known;
    const wait = this.#options.wait(name).finally(() => this.#waits.delete(name));
    this.#waits.set(name, wait);
    return wait;
  }
}
