import type { SubscriptionId } from "../../domain/subscription.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import { LastingTrouble } from "../../lib/lasting-trouble.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SubscriptionKey } from "../../ports/coordinator.ts";
import type { Progress, Store } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";

export interface ProgressWriterOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** Called with the rows that the store refused: the subscription is gone, or another node owns it. */
  readonly onRefused?: (rows: readonly Progress[]) => void;
}

/** Progress to write. */
export interface NotedProgress extends Progress {
  /** Called once the progress is in the store, unless the store refused it or newer progress replaced it. */
  readonly onSaved?: (() => void) | undefined;
}

/**
 * Writes the cursors of many subscriptions together: after `progressEventsMax` notes, or `progressDelayMs` after the first of them. After a
 * kill, events whose acknowledgement was not written are delivered again. A write that fails is retried.
 */
export class ProgressWriter {
  readonly #options: ProgressWriterOptions;
  readonly #trouble: ReportedTrouble;
  readonly #lasting: LastingTrouble;
  #noted = new Map<SubscriptionId, NotedProgress>();
  /** Rows of the write in progress. */
  #underWay = new Map<SubscriptionId, NotedProgress>();
  #notedCount = 0;
  /** Consecutive failed writes. */
  #failures = 0;
  #cancelTimer: (() => void) | undefined;
  /** The write in progress. Never rejects. */
  #writing: Promise<void> | undefined;
  /** Number of flushes that wait or write. While there are any, no other write begins. */
  #flushes = 0;

  constructor(options: ProgressWriterOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "progress not written", "progress written again");
    this.#lasting = new LastingTrouble({ ...options, toleranceMs: options.limits.outageToleranceMs });
  }

  note(progress: NotedProgress): void {
    if (!this.#isPending) this.#lasting.done(); // The rows that could not be written were dropped.
    this.#noted.set(progress.id, withLettersOf(this.#noted.get(progress.id), progress));
    this.#notedCount += 1;
    if (this.#notedCount >= this.#options.limits.progressEventsMax) this.#writeSoon();
    else this.#writeAfter(this.#options.limits.progressDelayMs);
  }

  /** A warning if writes of progress have failed for long; undefined otherwise. */
  findWarning(): string | undefined {
    const text = this.#isPending ? this.#lasting.find() : undefined;
    return text && `the progress of callbacks is not written, so a restart would repeat them: ${text}`;
  }

  /** The noted progress of a subscription that no write has taken yet. */
  find(id: SubscriptionId): Progress | undefined {
    return this.#noted.get(id);
  }

  /**
   * Drops the noted progress of a subscription under this epoch, because the subscription is gone or moves. A write in progress may still store it.
   */
  forget({ id, epoch }: SubscriptionKey): void {
    for (const rows of [this.#noted, this.#underWay]) {
      if (rows.get(id)?.epoch === epoch) rows.delete(id);
    }
  }

  /** Waits until everything noted so far is written, and no earlier write is in progress. @throws what the store throws. */
  async flush(): Promise<void> {
    this.#flushes += 1;
    try {
      while (this.#writing !== undefined) await this.#writing;
      if (this.#noted.size > 0) await this.#begin();
    } finally {
      this.#flushes -= 1;
      if (this.#isDue) this.#writeSoon();
    }
  }

  get #isPending(): boolean {
    return this.#noted.size > 0 || this.#writing !== undefined;
  }

  get #isDue(): boolean {
    const isFull = this.#notedCount >= this.#options.limits.progressEventsMax;
    return this.#noted.size > 0 && (isFull || this.#cancelTimer === undefined);
  }

  #writeAfter(delayMs: number): void {
    this.#cancelTimer ??= this.#options.clock.after(delayMs, () => {
      this.#cancelTimer = undefined;
      this.#writeSoon();
    });
  }

  /** Begins a write unless one is in progress. Progress noted during a write is written right after it. */
  #writeSoon(): void {
    if (this.#writing !== undefined || this.#flushes > 0 || this.#noted.size === 0) return;
    this.#begin().catch((error: unknown) => this.#trouble.failed(error));
  }

  #begin(): Promise<void> {
    const write = this.#write();
    const onEnded = (): void => {
      this.#writing = undefined;
      if (this.#isDue) this.#writeSoon();
    };
    this.#writing = write.then(onEnded, onEnded);
    return write;
  }

  async #write(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const rows = this.#noted;
    this.#noted = new Map();
    this.#underWay = rows;
    this.#notedCount = 0;
    try {
      const refused = await this.#options.store.saveProgress([...rows.values()]);
      this.#failures = 0;
      this.#trouble.done();
      this.#lasting.done();
      const isRefused = new Set(refused);
      for (const { id, onSaved } of rows.values()) if (!isRefused.has(id)) onSaved?.();
      if (refused.length > 0) this.#options.onRefused?.(refused.flatMap((id) => rows.get(id) ?? []));
    } catch (error) {
      this.#lasting.failed(error);
      this.#takeBack(rows);
      throw error;
    }
  }

  /** Keeps the rows of a failed write for the next one. Of a row with newer progress, keeps only the dead letters. */
  #takeBack(rows: ReadonlyMap<SubscriptionId, NotedProgress>): void {
    for (const [id, progress] of rows) {
      const newer = this.#noted.get(id);
      this.#noted.set(id, newer === undefined ? progress : withLettersOf(progress, newer));
    }
    const { progressRetryDelayMsMin: delayMsMin, progressRetryDelayMsMax: delayMsMax } = this.#options.limits;
    this.#failures += 1;
    this.#writeAfter(backoffDelayMs(this.#failures, { delayMsMin, delayMsMax, fraction: 0 }));
  }
}

/**
 * The newer progress, with the dead letters of the earlier one that are not stored yet. A worker repeats its dead letters in each progress, but the worker
 * that replaces it after a failed change does not know them.
 */
function withLettersOf(earlier: NotedProgress | undefined, newer: NotedProgress): NotedProgress {
  if (earlier?.skipped === undefined || earlier.epoch !== newer.epoch) return newer;
  return { ...newer, skipped: [...new Set([...earlier.skipped, ...(newer.skipped ?? [])])] };
}
