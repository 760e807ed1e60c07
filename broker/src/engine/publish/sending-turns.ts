import { createDeferred } from "../../lib/deferred.ts";
import type { Clock } from "../../ports/clock.ts";

/**
 * Lets transactions go to the ledger in the order of their calls, at most one in each turn of the event loop. A ledger that refuses a transaction for its
 * size without asking the chain does so in that turn. The next transaction then waits until the parts of this one are answered, so that topics keep their order.
 */
export class SendingTurns {
  readonly #clock: Pick<Clock, "soon">;
  /** Transactions that wait, as the functions that resume them. */
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;
  /** Number of transactions whose parts are not all answered. */
  #splits = 0;

  constructor(clock: Pick<Clock, "soon">) {
    this.#clock = clock;
  }

  /** Whether the parts of a transaction are not all answered. */
  get isHeld(): boolean {
    return this.#splits > 0;
  }

  /** Waits for the turn of a transaction. Returns undefined if it may go to the ledger at once. */
  take(): Promise<void> | undefined {
    if (!this.#isTaken && !this.isHeld) {
      this.#pass();
      return undefined;
    }
    const { promise, resolve } = createDeferred<void>();
    this.#waiting.push(resolve);
    return promise;
  }

  /** Lets no transaction go to the ledger until `work`, which sends the parts of one, has ended. */
  async hold(work: Promise<void>): Promise<void> {
    this.#splits += 1;
    try {
      await work;
    } finally {
      this.#splits -= 1;
      this.#next();
    }
  }

  #pass(): void {
    this.#isTaken = true;
    this.#clock.soon(() => {
      this.#isTaken = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#isTaken || this.isHeld) return;
    const resume = this.#waiting.shift();
    if (resume === undefined) return;
    this.#pass();
    resume();
  }
}
