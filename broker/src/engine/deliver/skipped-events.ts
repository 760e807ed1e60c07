import { type DeadLetter, deadLettersMax, toLetterReason } from "../../domain/dead-letter.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { BoundedLog } from "../../lib/bounded-log.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import type { EventIds } from "../event-ids.ts";
import type { FailedDelivery } from "./attempts.ts";
import type { HeldEvent } from "./held-event.ts";
import type { ProgressWriter } from "./progress-writer.ts";

export interface SkippedEventsOptions {
  readonly id: SubscriptionId;
  readonly store: Pick<Store, "deadLetters">;
  readonly progressWriter: Pick<ProgressWriter, "flush">;
  readonly clock: Pick<Clock, "now">;
  readonly eventIds: EventIds;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "deadLetters">;
  /** Shared by all subscriptions of a group, since one receiver that is down may cause a thousand dead letters for each. */
  readonly skippedLog: Pick<BoundedLog, "warn">;
  /** Dead letters that are not stored yet although the cursor has passed their events. */
  readonly unsaved: () => readonly DeadLetter[];
  readonly stopping: CancelSignal;
  /** Called after `failures` consecutive failures of the store. Resolves when it is time to try again. */
  readonly onFailed: (failures: number) => Promise<void>;
}

/** `full`: the subscription has no room for more dead letters. `stopped`: the worker stopped first. */
export type Room = "free" | "full" | "stopped";

/**
 * Keeps the number of dead letters of one subscription within its limit. Only the subscription's worker adds dead letters, and others only remove them. So
 * room that a count has found stays free.
 */
export class SkippedEvents {
  readonly #options: SkippedEventsOptions;
  /** Dead letters whose events the cursor has not passed yet. */
  #ahead = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SkippedEventsOptions) {
    this.#options = options;
  }

  /** Reserves room for `count` dead letters. Calls run one after another, as several lanes may skip events at once. */
  take(count: number): Promise<Room> {
    const taking = this.#turn.then(() => this.#take(count));
    this.#turn = taking;
    return taking;
  }

  /** Makes dead letters of events that failed together. */
  skip(items: readonly HeldEvent[], { attempts, reason }: Pick<FailedDelivery, "attempts" | "reason">): void {
    const { id: subscriptionId, clock, eventIds, metrics, skippedLog } = this.#options;
    const failure = { attempts, reason: toLetterReason(reason), failedAt: clock.now() };
    for (const held of items) {
      const { position, topic } = held.event;
      held.letter = { subscriptionId, ...failure, position, topic, eventId: eventIds.of(held.event) };
    }
    metrics.deadLetters("added", items.length);
    const skipped = { subscriptionId, events: items.length, eventId: items[0]?.letter?.eventId, ...failure };
    skippedLog.warn("events skipped: they are dead letters", skipped);
  }

  /** Call it when the cursor has passed the events of `count` dead letters. */
  passed(count: number): void {
    this.#ahead -= count;
  }

  #reportFull(): void {
    const { id: subscriptionId, logger } = this.#options;
    const remedy = "redeliver or discard some, then resume the subscription";
    logger.error("no room for dead letters", { subscriptionId, most: deadLettersMax, remedy });
  }

  /** Never rejects. */
  async #take(count: number): Promise<Room> {
    for (let failures = 1; !this.#options.stopping.aborted; failures += 1) {
      try {
        const isFree = (await this.#count()) + count <= deadLettersMax;
        if (isFree) this.#ahead += count;
        else this.#reportFull();
        return isFree ? "free" : "full";
      } catch (error) {
        this.#options.logger.error("dead letters not counted, trying again", {
          subscriptionId: this.#options.id,
          error,
        });
        await this.#options.onFailed(failures);
      }
    }
    return "stopped";
  }

  /** Counts stored and pending dead letters. One that is stored during the count may count twice, but is never left out. */
  async #count(): Promise<number> {
    const { id, store, progressWriter, unsaved } = this.#options;
    await progressWriter.flush();
    const pending = this.#ahead + unsaved().length;
    return pending + (await store.deadLetters.count(id));
  }
}
