import type { EngineLimits } from "../limits.ts";

/** What waits for a transaction. */
export interface WaitingEvents {
  readonly count: number;
  /** Whether it fills a transaction. */
  readonly isFull: boolean;
}

/** A transaction that has ended. */
export interface EndedTransaction {
  readonly events: number;
  readonly startedAt: number;
  /** Events that arrived while it was in progress. */
  readonly waiting: number;
}

/** Of the time that a transaction took, the share that the next may wait for the callers of the last. */
const lingerShare = 0.5;
/** Fewest events for which a second transaction pays: they cost several times what a transaction costs by itself. */
const halfMin = 256;

/**
 * Says when the next transaction goes. A transaction costs about a millisecond whatever it carries, and callers that publish one event after another
 * come back together: without care they would stay split in a large and a small convoy forever. Hence two waits: a transaction that is not full stays
 * behind the one in progress, unless that one takes long; and after one has ended, the next lingers until as many events wait as there were callers,
 * for a share of the time it took. Very many callers of short transactions are split in halves: while the chain commits one, the broker answers the
 * other and reads its next requests.
 */
export class Pacing {
  readonly #limits: Pick<EngineLimits, "lingerMsMax" | "pipelineAfterMs">;
  #underWay = 0;
  #eventsUnderWay = 0;
  #startedAt = 0;
  /** Events that are worth a transaction. */
  #wanted = 0;
  #isSplit = false;
  #lingerUntil = 0;

  constructor(limits: Pick<EngineLimits, "lingerMsMax" | "pipelineAfterMs">) {
    this.#limits = limits;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /**
   * How long to wait from `now` before the next transaction is sent; 0 or less when it is to go at once. Never longer than the limits, also
   * when the clock has stepped back.
   */
  waitMs(waiting: WaitingEvents, now: number): number {
    const { pipelineAfterMs, lingerMsMax } = this.#limits;
    if (waiting.isFull || this.isHalf(waiting.count)) return 0;
    if (this.#underWay === 0 && waiting.count >= this.#wanted) return 0;
    if (this.#underWay > 0) return Math.min(pipelineAfterMs, this.#startedAt + pipelineAfterMs - now);
    return Math.min(lingerMsMax, this.#lingerUntil - now);
  }

  /** Whether so many waiting events are one of two halves, which goes before the input at hand is read to its end. */
  isHalf(count: number): boolean {
    return this.#isSplit && this.#underWay < 2 && count >= this.#wanted;
  }

  started(events: number, now: number): void {
    this.#underWay += 1;
    this.#eventsUnderWay += events;
    this.#startedAt = now;
  }

  ended({ events, startedAt, waiting }: EndedTransaction, now: number): void {
    const { lingerMsMax, pipelineAfterMs } = this.#limits;
    const tookMs = now - startedAt;
    const callers = this.#eventsUnderWay + waiting;
    this.#underWay -= 1;
    this.#eventsUnderWay -= events;
    this.#isSplit = callers >= 2 * halfMin && tookMs < pipelineAfterMs;
    this.#wanted = this.#isSplit ? callers / 2 : callers;
    this.#lingerUntil = now + Math.min(lingerMsMax, tookMs * lingerShare);
  }
}
