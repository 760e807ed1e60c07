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
 * Lets transactions go to the ledger in the order of their calls, at most one in each turn of the event loop. If one is too large, the next one waits until all
 * its parts are answered, so that topics keep their order. A ledger that knows the limit itself refuses in the same turn; the chain may refuse later. So the
 * next transaction also waits for the answer if the chain may refuse this one: if it is larger than all mixes of accepted sizes. Limits on bytes and gas that
 * allow two sizes also allow every mix of them.
 */
export class SendingTurns {
  readonly #clock: Pick<Clock, "soon">;
  /** Transactions that wait, as the functions that resume them. */
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;
  /** Number of transactions that may turn out too large, or whose parts are not all answered. */
  #splits = 0;
  /** Sizes of accepted transactions, none within a mix of others, and none that the chain has refused since. */
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
      const smaller = this.#accepted.filter((one) => !isWithin(size, one));
      this.#accepted = isCertain(size, smaller) ? [] : smaller;
    };
    if (isCertain(size, this.#accepted)) return { accepted: () => {}, refused, ended: () => {} };
    const answered = createDeferred<void>();
    void this.hold(answered.promise);
    return {
      accepted: () => {
        const known = this.#accepted.filter((one) => !isWithin(one, size));
        const isNeeded = (one: SendingSize): boolean => {
          const others = known.filter((other) => other !== one);
          return !isCertain(one, [...others, size]);
        };
        this.#accepted = [...known.filter(isNeeded), size].slice(-sizesMax);
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

/** Whether a mix of two accepted sizes, or one of them, is at least as large. */
function isCertain(size: SendingSize, accepted: readonly SendingSize[]): boolean {
  return accepted.some((one) => accepted.some((other) => isWithinMix(size, [one, other])));
}

/** Whether `size` is within `long`, within `broad`, or within a mix of both. A mix counts only if `long` has more bytes, and `broad` more topics. */
function isWithinMix(size: SendingSize, [long, broad]: readonly [SendingSize, SendingSize]): boolean {
  if (isWithin(size, long) || isWithin(size, broad)) return true;
  if (long.bytes <= broad.bytes || long.topics >= broad.topics) return false;
  // The least share of `long` in the mix that has enough bytes, and the largest that leaves enough topics.
  const least = (size.bytes - broad.bytes) / (long.bytes - broad.bytes);
  const most = (broad.topics - size.topics) / (broad.topics - long.topics);
  return Math.max(0, least) <= Math.min(1, most);
}

function isWithin(size: SendingSize, other: SendingSize): boolean {
  return size.bytes <= other.bytes && size.topics <= other.topics;
}
