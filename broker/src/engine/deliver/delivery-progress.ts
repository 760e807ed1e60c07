import type { DeadLetter } from "../../domain/dead-letter.ts";
import { type CallbackSubscription, type Failure, nothingFailed } from "../../domain/subscription.ts";
import type { EndedPrefix } from "../../domain/event-window.ts";
import { before, type Position } from "../../domain/position.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Progress } from "../../ports/store.ts";
import { AskedWait } from "./asked-wait.ts";
import type { ProgressWriter } from "./progress-writer.ts";

/** The failure in a progress. */
export function failureOf({ failedAttempts, failedMs, failingSince, retryAt }: Failure): Failure {
  return { failedAttempts, failedMs, failingSince, retryAt };
}

export interface DeliveryProgressOptions {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly progressWriter: Pick<ProgressWriter, "note">;
}

interface Failed {
  readonly position: Position;
  readonly failure: Failure;
}

interface FailOptions {
  readonly isNews: boolean;
  readonly minGrowthMs: number;
}

/** The progress of one subscription, ahead of the store. Decides which changes are worth a write. */
export class DeliveryProgress {
  readonly #options: DeliveryProgressOptions;
  readonly #asked: AskedWait;
  #current: Progress;
  /** `failedMs` in the last progress that was given to the writer. */
  #savedFailedMs: number;
  /** `retryAt` in that progress. */
  #savedRetryAt: number;
  /** Dead letters of events up to the cursor that are not stored yet: every write of the cursor carries them. */
  #unsaved: readonly DeadLetter[] = [];

  constructor(subscription: CallbackSubscription, options: DeliveryProgressOptions) {
    this.#options = options;
    const { id, epoch, cursor, notifiedCount, notifiedAt } = subscription;
    this.#current = { id, epoch, cursor, notifiedCount, notifiedAt, ...failureOf(subscription) };
    this.#savedFailedMs = subscription.failedMs;
    this.#savedRetryAt = subscription.retryAt;
    this.#asked = new AskedWait(options.clock, subscription.retryAt);
  }

  get current(): Progress {
    return this.#current;
  }

  /** Whole milliseconds that are left of the wait that the receiver asked for; at most 0 if it is over. */
  get askedMs(): number {
    return this.#asked.leftMs;
  }

  get unsaved(): readonly DeadLetter[] {
    return this.#unsaved;
  }

  /**
   * How the event at `position`, the next one to deliver, has failed so far. The noted failure belongs to the event right after the cursor. If that event is
   * gone, or the subscriber may not receive it, a later event is the next one, and the failure does not count for it.
   */
  failureAt(position: Position): Failure {
    return before(position) === this.#current.cursor ? failureOf(this.#current) : this.#notFailed();
  }

  /** Moves the cursor to `upTo`. `letters` are the dead letters among the passed events; `failure` is how the next event has failed so far. */
  pass(
    { upTo: cursor, accepted }: Pick<EndedPrefix, "upTo" | "accepted">,
    letters: readonly DeadLetter[],
    failure: Failure = nothingFailed,
  ): void {
    if (letters.length > 0) this.#unsaved = [...this.#unsaved, ...letters];
    const { id, epoch, notifiedCount, notifiedAt } = this.#current;
    this.#current = {
      id,
      epoch,
      cursor,
      notifiedCount: notifiedCount + accepted,
      notifiedAt: accepted > 0 ? this.#options.clock.now() : notifiedAt,
      ...this.#asked.addTo(failureOf(failure)),
    };
    this.#savedFailedMs = failure.failedMs;
    this.#note();
  }

  /**
   * Call it when the next event, at `position`, fails. Moves the cursor to the place right before it. Notes the failure if `isNews`, if the failed time grew by
   * `minGrowthMs` since the last note, or if the store has a wait that was ended early: after a kill, it would begin again.
   */
  fail({ position, failure }: Failed, { isNews, minGrowthMs }: FailOptions): void {
    this.#current = { ...this.#current, cursor: before(position), ...this.#asked.addTo(failure) };
    const isWaitEnded = this.#savedRetryAt > Math.max(this.#current.retryAt, this.#options.clock.now());
    if (isNews || isWaitEnded || failure.failedMs - this.#savedFailedMs >= minGrowthMs) this.#noteFailure();
  }

  /** Delays every event, as the receiver asks. Notes this wait with the failure of the next event, even if another event got the answer. */
  ask(waitMs: number, next: Failed | undefined): void {
    this.#asked.ask(waitMs);
    if (next !== undefined) this.fail(next, { isNews: true, minGrowthMs: 0 });
  }

  /** Ends the wait that the receiver asked for. The store learns it with the next failure of the oldest event, or when the cursor moves. */
  endWait(): void {
    this.#asked.end();
    this.#current = { ...this.#current, retryAt: 0 };
  }

  /** Notes the failed time, if it grew. */
  saveFailure(): void {
    if (this.#current.failedMs > this.#savedFailedMs) this.#noteFailure();
  }

  /**
   * Moves the cursor past events that do not match, so that a restart does not read them again. If one of them has failed, the subscriber may not receive
   * it any more: the event after the new cursor must not get its failures.
   */
  passUnmatched(cursor: Position): void {
    if (cursor <= this.#current.cursor) return;
    this.#current = { ...this.#current, cursor, ...this.#notFailed() };
    this.#savedFailedMs = 0;
    this.#note();
  }

  /** The failure of an event that has not failed: the wait that the receiver asked for is for every event. */
  #notFailed(): Failure {
    return { ...nothingFailed, retryAt: this.#current.retryAt };
  }

  #noteFailure(): void {
    this.#savedFailedMs = this.#current.failedMs;
    this.#note();
  }

  #note(): void {
    this.#savedRetryAt = this.#current.retryAt;
    const skipped = this.#unsaved;
    if (skipped.length === 0) this.#options.progressWriter.note(this.#current);
    else this.#options.progressWriter.note({ ...this.#current, skipped, onSaved: () => this.#forget(skipped) });
  }

  #forget(saved: readonly DeadLetter[]): void {
    this.#unsaved = this.#unsaved.filter((letter) => !saved.includes(letter));
  }
}
