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

/**
 * Says when the next transaction goes. A transaction costs the same few milliseconds whatever it carries, so two halves are dearer than
 * a whole one, and callers that publish one event after another come back together: without care they would stay split in a large and a
 * small convoy forever. Hence two waits: a transaction that is not full stays behind the one in progress, unless that one takes
 * long; and after one has ended, the next lingers until as many events wait as there were callers, for a share of the time it took.
 */
export class Pacing {
  readonly #limits: Pick<EngineLimits, "lingerMsMax" | "pipelineAfterMs">;
  #underWay = 0;
  #startedAt = 0;
  #callers = 0;
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
    if (waiting.isFull) return 0;
    if (this.#underWay > 0) return Math.min(pipelineAfterMs, this.#startedAt + pipelineAfterMs - now);
    return waiting.count >= this.#callers ? 0 : Math.min(lingerMsMax, this.#lingerUntil - now);
  }

  started(now: number): void {
    this.#underWay += 1;
    this.#startedAt = now;
  }

  ended({ events, startedAt, waiting }: EndedTransaction, now: number): void {
    this.#underWay -= 1;
    this.#callers = events + waiting;
    this.#lingerUntil = now + Math.min(this.#limits.lingerMsMax, (now - startedAt) * lingerShare);
  }
}
