import { createDeferred } from "../../lib/deferred.ts";
import type { Clock } from "../../ports/clock.ts";

/** The size of a transaction. */
interface SendingSize {
  readonly bytes: number;
  readonly topics: number;
}

/** A transaction that may turn out too large. */
export interface Probe {
  /** Call it when the chain accepted the transaction. */
  accepted(): void;
  /** Call it when the transaction turned out too large. */
  refused(): void;
  /** Call it when the transaction and its parts are answered. */
  ended(): void;
}

/** Maximum number of accepted sizes in memory. */
const sizesMax = 16;

/**
 * Lets transactions go to the ledger in the order of their calls, at most one in each turn of the event loop. A ledger that refuses a transaction for its
 * size without asking the chain does so in that turn. The next transaction then waits until the parts of this one are answered, so that topics keep their order.
 * The chain may refuse it later, so the next one also waits for the answer to a transaction that has more bytes or topics than each accepted one.
 */
export class SendingTurns {
  readonly #clock: Pick<Clock, "soon">;
  /** Transactions that wait, as the functions that resume them. */
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;
  /** Number of transactions that may turn out too large, or whose parts are not all answered. */
  #splits = 0;
  /** Sizes of accepted transactions, none within another one, and none that the chain has refused since. */
  #accepted: readonly SendingSize[] = [];

  constructor(clock: Pick<Clock, "soon">) {
    this.#clock = clock;
  }

  /** Whether a transaction may turn out too large, or its parts are not all answered. */
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

  /** Lets no transaction go to the ledger until `work`, such as sending the parts of one, has ended. */
  async hold(work: Promise<void>): Promise<void> {
    this.#splits += 1;
    try {
      await work;
    } finally {
      this.#splits -= 1;
      this.#next();
    }
  }

  /** Call it when a transaction goes to the ledger. Holds the next ones if this one may turn out too large. */
  probe(size: SendingSize): Probe {
    const refused = (): void => {
      this.#accepted = this.#accepted.filter((one) => !isWithin(size, one));
    };
    if (this.#accepted.some((one) => isWithin(size, one))) return { accepted: () => {}, refused, ended: () => {} };
    const answered = createDeferred<void>();
    void this.hold(answered.promise);
    return {
      accepted: () => {
        this.#accepted = [...this.#accepted.filter((one) => !isWithin(one, size)), size].slice(-sizesMax);
        answered.resolve();
      },
      refused,
      ended: () => answered.resolve(),
    };
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

function isWithin(size: SendingSize, other: SendingSize): boolean {
  return size.bytes <= other.bytes && size.topics <= other.topics;
}
