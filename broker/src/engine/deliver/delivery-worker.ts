import type { Event } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Notification } from "../../ports/sink.ts";
import type { Progress } from "../../ports/store.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import { type AttemptsParts, type DeliverySignals, deliver, pauseAfter } from "./attempts.ts";
import type { ProgressWriter } from "./progress-writer.ts";

export interface DeliveryWorkerParts extends AttemptsParts {
  readonly feed: Feed;
  readonly progressWriter: ProgressWriter;
  readonly eventIds: EventIds;
  /** Called once when delivery gives up: the receiver is gone, or has failed for too long. */
  readonly onGivenUp: (id: SubscriptionId, worker: DeliveryWorker) => void;
}

/**
 * Delivers the events of one callback subscription, one at a time and in order. The cursor moves when the receiver has accepted an
 * event, and over events that the filter does not match.
 */
export class DeliveryWorker {
  readonly feed: Feed;
  readonly #parts: DeliveryWorkerParts;
  readonly #subscription: Subscription;
  readonly #stopping = new AbortController();
  readonly #aborting = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #progress: Progress;
  #isDelivering = false;

  constructor(subscription: Subscription, parts: DeliveryWorkerParts) {
    this.feed = parts.feed;
    this.#parts = parts;
    this.#subscription = subscription;
    const { id, cursor, notifiedCount, notifiedAt } = subscription;
    this.#progress = { id, cursor, notifiedCount, notifiedAt };
  }

  /** How far the subscription is, ahead of what the store has been told. */
  get progress(): Progress {
    return this.#progress;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** True when everything that matches is acknowledged. */
  get isIdle(): boolean {
    return !this.#isDelivering && this.feed.isEmpty && this.feed.isLive;
  }

  /**
   * Ends after the attempt under way, so that an event which is accepted counts as such; an attempt that takes longer than `graceMs`
   * is aborted.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    if (graceMs === 0) this.#aborting.abort();
    const cancel = this.#parts.clock.after(graceMs, () => this.#aborting.abort());
    await this.#running;
    cancel();
    this.#passUnmatched();
  }

  async #run(): Promise<void> {
    for (;;) {
      const event = await this.#nextEvent();
      if (event === undefined) return;
      this.#isDelivering = true;
      const result = await deliver(this.#parts, this.#toNotification(event), this.#signals());
      if (result === "interrupted") return;
      if (result === "given-up") {
        this.#parts.onGivenUp(this.#subscription.id, this);
        return;
      }
      this.#isDelivering = false;
      this.#acknowledge(event.position);
    }
  }

  #signals(): DeliverySignals {
    return { stopping: this.#stopping.signal, aborting: this.#aborting.signal };
  }

  /** The next event; waits out a store that fails: the feed has not moved, so asking again loses nothing. */
  async #nextEvent(): Promise<Event | undefined> {
    const { signal } = this.#stopping;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        return await this.feed.next(signal);
      } catch (error) {
        this.#parts.logger.error("events not read", { subscriptionId: this.#subscription.id, error });
        await pauseAfter(this.#parts, failures, { signal });
      }
    }
    return undefined;
  }

  #toNotification(event: Event): Notification {
    return { subscription: this.#subscription, event, eventId: this.#parts.eventIds.of(event) };
  }

  #acknowledge(cursor: Position): void {
    const { id, notifiedCount } = this.#progress;
    this.#progress = { id, cursor, notifiedCount: notifiedCount + 1, notifiedAt: this.#parts.clock.now() };
    this.#parts.progressWriter.note(this.#progress);
  }

  /** Moves the cursor over what does not match, so that a restart need not read it again. */
  #passUnmatched(): void {
    const cursor = this.feed.fedUpTo;
    if (this.#isDelivering || !this.feed.isEmpty || cursor <= this.#progress.cursor) return;
    this.#progress = { ...this.#progress, cursor };
    this.#parts.progressWriter.note(this.#progress);
  }
}
