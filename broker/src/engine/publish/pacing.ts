import type { EngineLimits } from "../limits.ts";

/** The events that wait for a transaction. */
export interface WaitingEvents {
  readonly count: number;
  /** Whether the waiting events fill a transaction. */
  readonly isFull: boolean;
}

/** A transaction that has ended. */
export interface EndedTransaction {
  readonly events: number;
  readonly startedAt: number;
  /** Number of events that wait when the transaction ends. */
  readonly waiting: number;
}

/** Share of a transaction's duration for which the next one may wait for the same callers to come back. */
const lingerShare = 0.5;
/** Fewest events of a half: with fewer, the second transaction takes more time than the two threads save by working at once. */
const halfMin = 32;

/**
 * Decides when to send the next transaction. A transaction costs about a millisecond whatever it carries, and callers that publish one event after another come
 * back together. Without care, they would stay split in a large and a small convoy forever. So there are two waits. A transaction that is not full waits for
 * the one in progress, unless that one takes long. After a transaction has ended, the next one lingers until as many events wait as there were callers. It
 * lingers for a share of the ended transaction's duration, and for `lingerMsMax`, at most. Many callers of short transactions are split in halves: while the
 * chain commits one half, the broker answers the other and reads its next requests.
 */
export class Pacing {
  readonly #limits: Pick<EngineLimits, "lingerMsMax" | "pipelineAfterMs">;
  #underWay = 0;
  #eventsUnderWay = 0;
  #startedAt = 0;
  /** Number of waiting events at which the next transaction is sent. */
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
   * How long to wait from `now` before the next transaction is sent, in milliseconds; 0 or less to send it at once. Never longer than the limits, even
   * when the clock has stepped back.
   */
  waitMs(waiting: WaitingEvents, now: number): number {
    const { pipelineAfterMs, lingerMsMax } = this.#limits;
    if (waiting.isFull || this.isHalf(waiting.count)) return 0;
    if (this.#underWay === 0 && waiting.count >= this.#wanted) return 0;
    if (this.#underWay > 0) return Math.min(pipelineAfterMs, this.#startedAt + pipelineAfterMs - now);
    return Math.min(lingerMsMax, this.#lingerUntil - now);
  }

  /**
   * Whether `count` waiting events make a half and fewer than two transactions are in progress. A half is sent before the broker reads the rest of the current
   * input.
   */
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
