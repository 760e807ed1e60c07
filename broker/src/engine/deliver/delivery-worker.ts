import type { Event } from "../../domain/event.ts";
import { DeliveryWindow } from "../../domain/delivery-window.ts";
import { before, type Position } from "../../domain/position.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { type CallbackSubscription, nothingFailed, type SubscriptionId } from "../../domain/subscription.ts";
import { Cancellation, type CancelSignal } from "../../lib/cancellation.ts";
import { retryAfterMsMax } from "../../lib/retry-after.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { CallbackTarget, Notification } from "../../ports/sink.ts";
import type { Progress } from "../../ports/store.ts";
import type { Feed } from "../dispatch/feed.ts";
import { viewOf } from "../event-view.ts";
import type { EventIds } from "../event-ids.ts";
import type { Troubles } from "../integrity/troubles.ts";
import {
  type AttemptsOptions,
  type DeliverySignals,
  deliver,
  type Failing,
  pauseAfter,
  type Wait,
} from "./attempts.ts";
import type { ProgressWriter } from "./progress-writer.ts";

/** What one worker delivers, and from where. */
export interface DeliveryOrder {
  readonly subscription: CallbackSubscription;
  readonly feed: Feed;
  /** Whether this node may still deliver; always if left out. */
  readonly mayStart?: (() => boolean) | undefined;
  /** Whether events of a topic may reach the subscriber by now; all may if left out. */
  readonly mayReceive?: ((topic: TopicName) => boolean) | undefined;
  /** Waits for the turn of an attempt; undefined where it may be made at once. */
  readonly turn?: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** How the subscriber calls the topics; by their real names if left out. */
  readonly names?: TenantNames | undefined;
}

/** The same object for all workers of a group: there may be tens of thousands. */
export interface DeliveryWorkerOptions extends AttemptsOptions {
  readonly progressWriter: ProgressWriter;
  readonly eventIds: EventIds;
  /** Notes each failure to read events. The feed clears it after a read that succeeds. */
  readonly troubles: Troubles;
  /** Whether this node attempts no delivery at all; false if left out. */
  readonly isPaused?: boolean | undefined;
  /** Shared by all workers of a node. */
  readonly slices: TimeSlices;
  /** Called once when delivery gives up: the receiver is gone, or has failed for too long. */
  readonly onGivenUp: (id: SubscriptionId, worker: DeliveryWorker) => void;
}

/** Number of writes of the failed time until delivery gives up. A kill loses at most the time between two of them. */
const failingSaves = 64;

/**
 * Delivers the events of one callback subscription, one at a time and in order. The cursor moves when the receiver has accepted an
 * event, and past events that the filter does not match.
 */
export class DeliveryWorker {
  readonly feed: Feed;
  readonly #options: DeliveryWorkerOptions;
  readonly #order: DeliveryOrder;
  /** The same object for all attempts: the sink caches by it. */
  readonly #target: CallbackTarget;
  readonly #stopping = new Cancellation();
  readonly #aborting = new Cancellation();
  #running: Promise<void> = Promise.resolve();
  #progress: Progress;
  /** Value in the last progress that was noted. */
  #savedFailedMs: number;
  /** When the next attempt is due; undefined unless the worker waits for it. */
  #nextAttemptAt: number | undefined;
  /** Holds at most one event: the next one is delivered when the receiver has accepted it. */
  readonly #window = new DeliveryWindow();

  constructor(order: DeliveryOrder, options: DeliveryWorkerOptions) {
    const { subscription, feed } = order;
    this.feed = feed;
    this.#options = options;
    this.#order = order;
    const { format, url, secret } = subscription.delivery;
    this.#target = { id: subscription.id, format, url, secret };
    const { id, epoch, cursor, notifiedCount, notifiedAt } = subscription;
    const { failedAttempts, failedMs, failingSince, retryAt } = subscription;
    const failure = { failedAttempts, failedMs, failingSince, retryAt };
    this.#progress = { id, epoch, cursor, notifiedCount, notifiedAt, ...failure };
    this.#savedFailedMs = failedMs;
  }

  /** Progress of the subscription, ahead of the store. */
  get progress(): Progress {
    return this.#progress;
  }

  /** When the next attempt is due, in milliseconds since the epoch; undefined unless the worker waits for it. */
  get nextAttemptAt(): number | undefined {
    return this.#nextAttemptAt;
  }

  /** Place of the event that the receiver has to accept next; undefined if the worker has not read it yet. */
  get waitingAt(): Position | undefined {
    return this.#window.lowest ?? this.feed.peek()?.position;
  }

  /** A paused worker takes nothing from its feed. So the feed reads nothing, and the cursor stays. */
  start(): void {
    if (this.#options.isPaused !== true) this.#running = this.#run();
  }

  /** Whether every matching event is acknowledged. */
  get isIdle(): boolean {
    return this.#window.size === 0 && this.feed.isCaughtUp;
  }

  /**
   * Ends after the attempt in progress, so that an accepted event counts as accepted. Aborts an attempt that takes longer than `graceMs`.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    if (graceMs === 0) this.#aborting.abort();
    const cancel = this.#options.clock.after(graceMs, () => this.#aborting.abort());
    await this.#running;
    cancel();
    this.#passUnmatched();
    this.#saveFailing(1);
  }

  async #run(): Promise<void> {
    for (let event = await this.#next(); event !== undefined; event = await this.#next()) {
      const { position, topic } = event;
      const ticket = this.#window.give({ position, topic, qos: 1 });
      this.feed.advance();
      // Thousands of workers may have the same event: they must not all begin to call in this turn of the event loop.
      await this.#options.slices.pause();
      const result = await deliver(this.#options, this.#toNotification(event), this.#signals(topic));
      if (result === "given-up") this.#options.onGivenUp(this.#order.subscription.id, this);
      if (result !== "accepted" && !this.#isDenied(topic)) return;
      this.#window.acknowledge(ticket);
      if (result === "accepted") this.#acknowledge(position);
      else this.#passDenied();
    }
  }

  /** Whether the worker goes on, and only the right to the topic has ended while the event waited. */
  #isDenied(topic: TopicName): boolean {
    const { mayStart, mayReceive } = this.#order;
    return !this.#stopping.aborted && mayStart?.() !== false && mayReceive?.(topic) === false;
  }

  /** Its receiver has not failed with the next event. */
  #passDenied(): void {
    this.#savedFailedMs = 0;
    this.#progress = { ...this.#progress, ...nothingFailed };
    this.#passUnmatched();
  }

  #signals(topic: TopicName): DeliverySignals {
    const { failedAttempts: attempts, failedMs: waitedMs, retryAt } = this.#progress;
    return {
      stopping: this.#stopping,
      aborting: this.#aborting,
      turn: this.#order.turn,
      mayStart: () => this.#order.mayStart?.() !== false && this.#order.mayReceive?.(topic) !== false,
      failing: { attempts, waitedMs },
      leftMs: retryAt === 0 ? 0 : this.#leftUntil(retryAt),
      onWaiting: (wait) => this.#wait(wait),
      onFailing: (failing) => this.#fail(failing),
    };
  }

  /** Of a wait that began in an earlier run of the broker, or at another node, whose clock may differ. */
  #leftUntil(retryAt: number): number {
    const leftMs = Math.min(Math.max(0, retryAt - this.#options.clock.now()), retryAfterMsMax);
    if (leftMs > 0) this.#nextAttemptAt = retryAt;
    return leftMs;
  }

  /** Notes the first failure, so that others see it, and what the receiver asked for: whoever takes the subscription over waits as well. */
  #wait({ attempts: failedAttempts, waitMs, isAsked }: Wait): void {
    const now = this.#options.clock.now();
    const isFirst = this.#progress.failingSince === 0;
    const failingSince = isFirst ? now : this.#progress.failingSince;
    this.#nextAttemptAt = now + waitMs;
    this.#progress = { ...this.#progress, failedAttempts, failingSince, retryAt: isAsked ? now + waitMs : 0 };
    if (isFirst || isAsked) this.#options.progressWriter.note(this.#progress);
  }

  #fail({ attempts: failedAttempts, waitedMs: failedMs }: Failing): void {
    this.#nextAttemptAt = undefined;
    this.#progress = { ...this.#progress, failedAttempts, failedMs };
    this.#saveFailing(this.#options.limits.giveUpAfterMs / failingSaves);
  }

  /** Notes the progress if the failed time grew by `sinceMs` since it was last noted. */
  #saveFailing(sinceMs: number): void {
    if (this.#progress.failedMs - this.#savedFailedMs < sinceMs) return;
    this.#savedFailedMs = this.#progress.failedMs;
    this.#options.progressWriter.note(this.#progress);
  }

  /** The next event; undefined when the worker stops. A store that fails is asked again: the feed has not moved. */
  async #next(): Promise<Event | undefined> {
    const signal = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      const event = this.feed.peek();
      if (event !== undefined) return event;
      try {
        await this.feed.more(signal);
      } catch (error) {
        failures += 1;
        this.#onUnread(error);
        await pauseAfter(this.#options, failures, signal);
      }
    }
    this.#options.troubles.clear(this.#order.subscription.id);
    return undefined;
  }

  #onUnread(error: unknown): void {
    const { troubles, logger } = this.#options;
    const { id, groupId } = this.#order.subscription;
    logger.error("events not read, trying again", { subscriptionId: id, error });
    const reason = error instanceof Error ? error.message : String(error);
    troubles.note(id, { groupId, reason: `its events cannot be read: ${reason}` });
  }

  #toNotification(event: Event): Notification {
    const { names } = this.#order;
    const seen = names === undefined ? event : viewOf(event, names);
    return { subscription: this.#target, event: seen, eventId: this.#options.eventIds.of(event) };
  }

  #acknowledge(cursor: Position): void {
    const { id, epoch, notifiedCount } = this.#progress;
    const notifiedAt = this.#options.clock.now();
    this.#savedFailedMs = 0;
    this.#progress = { id, epoch, cursor, notifiedCount: notifiedCount + 1, notifiedAt, ...nothingFailed };
    this.#options.progressWriter.note(this.#progress);
  }

  /** Moves the cursor past events that do not match, so that a restart does not read them again. */
  #passUnmatched(): void {
    const { lowest } = this.#window;
    const cursor = lowest === undefined ? this.feed.position : before(lowest);
    if (cursor <= this.#progress.cursor) return;
    this.#progress = { ...this.#progress, cursor };
    this.#options.progressWriter.note(this.#progress);
  }
}
