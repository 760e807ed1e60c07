import type { Event } from "../../domain/event.ts";
import { type EventEnd, EventWindow } from "../../domain/event-window.ts";
import { before, type Position } from "../../domain/position.ts";
import { nothingFailed, type SubscriptionId } from "../../domain/subscription.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import { retryAfterMsMax } from "../../lib/retry-after.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { CallbackTarget } from "../../ports/sink.ts";
import type { Progress } from "../../ports/store.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import {
  type AttemptsOptions,
  type DeliveryResult,
  type DeliverySignals,
  deliver,
  type FailedDelivery,
  type Failing,
  pauseAfter,
  type Wait,
} from "./attempts.ts";
import { type AcceptedAhead, findAcceptedAhead } from "./accepted-ahead.ts";
import { AttemptTurn } from "./attempt-turn.ts";
import type { DeliveryTask } from "./delivery-task.ts";
import { DeliveryProgress } from "./delivery-progress.ts";
import { endHeld, type HeldEvent } from "./held-event.ts";
import { Lanes } from "./lanes.ts";
import { loadOrigins } from "./load-origins.ts";
import type { ProgressWriter } from "./progress-writer.ts";
import { reportUnread, type UnreadReports } from "./report-unread.ts";
import { requestBytesOf } from "./request-bytes.ts";
import { EventsAhead, type SharedEventsAhead } from "./events-ahead.ts";
import { type Room, SkippedEvents, type SkippedEventsOptions } from "./skipped-events.ts";
import { toNotification, toTarget } from "./to-notification.ts";

/** Options of all workers of a group, in one object: there may be tens of thousands of workers. */
export interface DeliveryWorkerOptions
  extends AttemptsOptions,
    UnreadReports,
    Pick<SkippedEventsOptions, "store" | "skippedLog"> {
  readonly progressWriter: ProgressWriter;
  readonly eventIds: EventIds;
  readonly sharedEventsAhead: SharedEventsAhead;
  /** Whether deliveries of this node are paused; false if left out. */
  readonly isPaused?: boolean | undefined;
  /** Shared by all workers of a node. */
  readonly slices: TimeSlices;
  /** Called once when delivery gives up: the receiver is gone or has failed for too long, or there is no room for more dead letters. */
  readonly onGivenUp: (id: SubscriptionId, worker: DeliveryWorker) => void;
}

/** A worker saves `failedMs` whenever it has grown by 1/64 of `giveUpAfterMs`. A kill loses at most the growth since the last save. */
const failingSaves = 64;
/** Maximum estimated bytes of one batch, unless one event alone has more. */
const batchBytesMax = 1024 * 1024;

/**
 * Delivers the events of one callback subscription in order, one at a time, unless the subscription asks for concurrency (several topics at once) or batches.
 * The cursor advances up to the first event that the receiver has not accepted. It also passes dead letters, and events that the filter does not match or that
 * the subscriber may not receive any more.
 */
export class DeliveryWorker {
  readonly feed: Feed;
  readonly #options: DeliveryWorkerOptions;
  readonly #task: DeliveryTask;
  /** The same object for all attempts: the sink caches by it. */
  readonly #target: CallbackTarget;
  readonly #stopping = new Cancellation();
  readonly #aborting = new Cancellation();
  readonly #progress: DeliveryProgress;
  /** Events that were taken from the feed and that the cursor has not passed. */
  readonly #window = new EventWindow<HeldEvent>();
  /** Undefined without concurrency and batches: then the worker takes the next event when the one before has ended. */
  readonly #lanes: Lanes<HeldEvent> | undefined;
  /** Undefined if `#lanes` is. */
  readonly #ahead: EventsAhead | undefined;
  /** Undefined if the subscription does not skip failing events. */
  readonly #skipped: SkippedEvents | undefined;
  /** Aborts the waits before attempts; undefined before the first wait. */
  #retrying: Cancellation | undefined;
  #running: Promise<void> = Promise.resolve();
  /** When the next attempt is due; undefined unless the worker waits for it. */
  #nextAttemptAt: number | undefined;
  /** Without lanes, the worker waits for this turn before it takes an event. It gives the turn up when the first attempt has ended, or waits for the store. */
  readonly #turn = new AttemptTurn();
  #hasGivenUp = false;

  constructor(task: DeliveryTask, options: DeliveryWorkerOptions) {
    const { subscription, feed } = task;
    this.feed = feed;
    this.#options = options;
    this.#task = task;
    this.#target = toTarget(subscription);
    this.#progress = new DeliveryProgress(subscription, options);
    this.#lanes = this.#createLanes();
    const shared = options.sharedEventsAhead;
    const countAhead = () => this.#window.size;
    this.#ahead = this.#lanes && new EventsAhead({ shared, countAhead, stopping: this.#stopping });
    this.#skipped = this.#target.options?.skipAfter === undefined ? undefined : this.#createSkipped();
  }

  /** Progress of the subscription, ahead of the store. */
  get progress(): Progress {
    return this.#progress.current;
  }

  /** When the next attempt is due, in milliseconds since the epoch; undefined unless the worker waits for it. */
  get nextAttemptAt(): number | undefined {
    return this.#nextAttemptAt;
  }

  /** Place of the event that the receiver has to accept next; undefined if there is none, or the worker has not read it yet. */
  get waitingAt(): Position | undefined {
    return this.#window.oldest?.position ?? this.feed.peek()?.position;
  }

  /** Events beyond the cursor that the receiver has accepted. Read it after the worker has stopped. */
  get acceptedAhead(): AcceptedAhead {
    const notTaken = [...(this.#task.ahead ?? [])].filter((position) => position > this.feed.position);
    return new Set([...findAcceptedAhead(this.#window.entries()), ...notTaken]);
  }

  /** Begins delivery. A paused worker takes nothing from its feed, so the feed reads nothing and the cursor stays. */
  start(): void {
    if (this.#options.isPaused !== true) this.#running = this.#run();
  }

  /** Whether every matching event is acknowledged. */
  get isIdle(): boolean {
    return this.#window.size === 0 && this.feed.isCaughtUp;
  }

  /** Ends the waits, so that the next attempts are made at once. Returns false if the worker is stopping. */
  retryNow(): boolean {
    if (this.#stopping.aborted) return false;
    const retrying = this.#retrying;
    this.#retrying = undefined;
    this.#progress.endWait();
    retrying?.abort();
    return true;
  }

  /** Ends after the attempts in progress, so that an accepted event counts as accepted. Aborts attempts that take longer than `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    if (graceMs === 0) this.#aborting.abort();
    const cancel = this.#options.clock.after(graceMs, () => this.#aborting.abort());
    await this.#running;
    cancel();
    this.#ahead?.close();
    const { oldest } = this.#window;
    this.#progress.passUnmatched(oldest === undefined ? this.feed.position : before(oldest.position));
    this.#progress.saveFailure();
  }

  async #run(): Promise<void> {
    while (await this.#hasNext()) {
      // Thousands of workers may have the same event: they must not all begin to call in this turn of the event loop.
      await this.#options.slices.pause();
      const entering = this.#lanes === undefined && !this.#turn.hasCome ? this.#enter() : undefined;
      if (entering !== undefined) await entering;
      const event = this.#stopping.aborted ? undefined : this.feed.peek();
      if (event !== undefined && !(await this.#begin(this.#take(event)))) break;
    }
    this.#turn.leave();
    await this.#lanes?.end();
    this.#options.troubles.clear(this.#task.subscription.id);
    if (this.#hasGivenUp) this.#options.onGivenUp(this.#task.subscription.id, this);
  }

  /** Begins to deliver an event. Returns false if the worker must end. */
  #begin(held: HeldEvent): Promise<boolean> | boolean {
    if (this.#task.ahead?.has(held.position) === true) {
      this.#turn.leave();
      this.#settle([held], "accepted");
      return true;
    }
    if (this.#lanes === undefined) return this.#deliver([held]);
    this.#lanes.add(held);
    return this.#ahead?.wait().then(() => true) ?? true;
  }

  /** Waits for a turn. Takes none while the next attempt is not due: the worker would keep others from their turns. */
  #enter(): Promise<void> | undefined {
    if (this.#progress.current.retryAt > this.#options.clock.now()) return undefined;
    return this.#turn.enter({
      sink: this.#options.sink,
      target: this.#target,
      turn: this.#task.turn,
      stopping: this.#stopping,
    });
  }

  #createLanes(): Lanes<HeldEvent> | undefined {
    const { concurrency = 1, batchEvents, batchMs = 0 } = this.#target.options ?? {};
    if (concurrency === 1 && batchEvents === undefined) return undefined;
    return new Lanes({
      clock: this.#options.clock,
      stopping: this.#stopping,
      concurrency,
      itemsMax: batchEvents ?? 1,
      bytesMax: batchBytesMax,
      waitMs: batchMs,
      isFull: () => this.#ahead?.isFull === true,
      deliver: (items) => this.#deliver(items),
    });
  }

  #createSkipped(): SkippedEvents {
    return new SkippedEvents({
      ...this.#options,
      id: this.#target.id,
      unsaved: () => this.#progress.unsaved,
      stopping: this.#stopping,
      onFailed: (failures) => pauseAfter(this.#options, failures, this.#stopping),
    });
  }

  /** Takes an event from the feed. The first one may have failed before, in an earlier run of the broker or at another node. */
  #take(event: Event): HeldEvent {
    const failure = this.#window.size === 0 ? this.#progress.failureAt(event.position) : nothingFailed;
    const held: HeldEvent = {
      event,
      position: event.position,
      end: undefined,
      lane: (this.#target.options?.concurrency ?? 1) > 1 ? event.topic : "",
      bytes: this.#lanes === undefined ? 0 : requestBytesOf(event),
      failure,
      isAlone: failure.failedAttempts > 0,
      letter: undefined,
    };
    this.#window.add(held);
    this.#ahead?.take(held.bytes);
    this.feed.advance();
    return held;
  }

  /** Delivers events in one request; the cursor passes those that the subscriber may not receive any more. Returns false if the worker must end. */
  async #deliver(items: readonly HeldEvent[]): Promise<boolean> {
    for (let rest = items; rest.length > 0; ) {
      const result = await this.#attempt(rest);
      this.#turn.leave();
      if (result.status === "accepted") {
        this.#settle(rest, "accepted");
        return true;
      }
      if (result.status !== "interrupted") return this.#onFailed(rest, result);
      if (this.#stopping.aborted) return false;
      if (this.#task.mayStart?.() === false) {
        // Whoever ended this node's right to deliver will stop this worker. Wait, because the right may return first.
        await pauseAfter(this.#options, 1, this.#stopping);
        continue;
      }
      const denied = rest.filter((held) => !this.#mayReceive(held));
      this.#settle(denied, "passed");
      rest = rest.filter(({ end }) => end === undefined);
    }
    return true;
  }

  /** Skips events that failed, if the subscription asks for that and has room for dead letters. Otherwise, or if the receiver is gone, ends delivery. */
  async #onFailed(items: readonly HeldEvent[], result: DeliveryResult): Promise<boolean> {
    const room = result.status === "failed" ? await this.#skip(items, result) : undefined;
    if (room === "free") return true;
    this.#hasGivenUp ||= room !== "stopped";
    this.#stopping.abort();
    return false;
  }

  /** Skips events that failed if there is room for them. Returns what {@link SkippedEvents.take} found; undefined if the subscription skips none. */
  async #skip(items: readonly HeldEvent[], failed: FailedDelivery): Promise<Room | undefined> {
    if (this.#skipped === undefined) return undefined;
    if (failed.retryAfterMs !== undefined) this.#progress.ask(failed.retryAfterMs, this.#window.oldest);
    const room = await this.#skipped.take(items.length);
    if (room !== "free") return room;
    this.#skipped.skip(items, failed);
    this.#settle(items, "skipped");
    return room;
  }

  async #attempt(items: readonly HeldEvent[]): Promise<DeliveryResult> {
    const { origins, names } = this.#task;
    const events = items.map(({ event }) => event);
    let hasFailed = false;
    const onFailed = (error: unknown, failures: number): Promise<void> => {
      hasFailed = true;
      return this.#onUnread(error, failures);
    };
    const onWait = (): void => this.#turn.leaveSlot();
    const found = origins && (await loadOrigins(events, origins, { signal: this.#stopping, onFailed, onWait }));
    if (origins !== undefined && found === undefined) return { status: "interrupted" };
    if (hasFailed) this.#options.troubles.clear(this.#target.id);
    const addressee = { target: this.#target, eventIds: this.#options.eventIds, names };
    return deliver(this.#options, toNotification(addressee, events, found), this.#signals(items));
  }

  /** Marks events as ended, and moves the cursor to the first event that has not ended. */
  #settle(items: readonly HeldEvent[], end: EventEnd): void {
    for (const held of items) endHeld(held, end);
    const prefix = this.#window.takePrefix();
    if (prefix !== undefined) {
      this.#skipped?.passed(prefix.skipped.length);
      const letters = prefix.skipped.flatMap(({ letter }) => letter ?? []);
      const { oldest } = this.#window;
      const upTo = oldest === undefined ? prefix.upTo : before(oldest.position);
      this.#progress.pass({ ...prefix, upTo }, letters, oldest?.failure);
    }
    this.#ahead?.free(items.reduce((sum, { bytes }) => sum + bytes, 0));
  }

  /** Whether the subscriber may still receive the event. */
  #mayReceive({ event: { topic } }: HeldEvent): boolean {
    return this.#task.mayReceive?.(topic) !== false;
  }

  #signals(items: readonly HeldEvent[]): DeliverySignals {
    const head = items[0] as HeldEvent; // There is an event.
    const { failedAttempts: attempts, failedMs: waitedMs } = head.failure;
    return {
      stopping: this.#stopping,
      aborting: this.#aborting,
      retrying: () => (this.#retrying ??= new Cancellation()),
      turn: this.#task.turn,
      hasTurn: this.#turn.hasCome,
      mayStart: () => this.#task.mayStart?.() !== false && items.every((held) => this.#mayReceive(held)),
      failing: { attempts, waitedMs },
      attemptsMax: this.#target.options?.skipAfter,
      leftMs: () => this.#leftFor(head),
      onWaiting: (wait) => this.#wait(head, wait),
      onFailing: (failing) => this.#fail(head, failing),
    };
  }

  /** Whole milliseconds until an attempt is due. Bounded, because `retryAt` may come from an earlier run, or from a node with another clock. */
  #leftFor(held: HeldEvent): number {
    const { clock } = this.#options;
    const { retryAt } = held.failure;
    const leftMs = Math.max(0, Math.min(retryAt - clock.now(), retryAfterMsMax), this.#progress.askedMs);
    if (leftMs > 0 && this.#window.oldest === held) this.#nextAttemptAt = clock.now() + leftMs;
    return leftMs;
  }

  /** Notes the first failure, for listings, and a wait that the receiver asked for: a node that takes over must wait too. */
  #wait(held: HeldEvent, { attempts: failedAttempts, waitMs, isAsked }: Wait): void {
    this.#turn.leave();
    const { clock } = this.#options;
    const nextAttemptAt = clock.now() + waitMs;
    const isFirst = held.failure.failingSince === 0;
    const failingSince = isFirst ? clock.now() : held.failure.failingSince;
    held.failure = { ...held.failure, failedAttempts, failingSince, retryAt: isAsked ? nextAttemptAt : 0 };
    const { oldest } = this.#window;
    if (isAsked && this.#lanes !== undefined) this.#progress.ask(waitMs, oldest === held ? undefined : oldest);
    if (oldest !== held) return;
    this.#nextAttemptAt = nextAttemptAt;
    this.#progress.fail(held, { isNews: isFirst || isAsked, minGrowthMs: Number.POSITIVE_INFINITY });
  }

  #fail(held: HeldEvent, { attempts: failedAttempts, waitedMs: failedMs }: Failing): void {
    // If this worker is stopping, the wait was cut short: `retryAt` stays, so that the subscription's next worker waits until then.
    const isOver = !this.#stopping.aborted;
    held.failure = { ...held.failure, failedAttempts, failedMs, ...(isOver && { retryAt: 0 }) };
    if (this.#window.oldest !== held) return;
    this.#nextAttemptAt = undefined;
    // If attempts are counted, the count must survive a kill.
    const isNews = this.#target.options?.skipAfter !== undefined;
    this.#progress.fail(held, { isNews, minGrowthMs: this.#options.limits.giveUpAfterMs / failingSaves });
  }

  /** Waits for the next event; false when the worker stops. If the store fails, reads again. Keeps its turn while it reads, see {@link AttemptTurn}. */
  async #hasNext(): Promise<boolean> {
    for (let failures = 0; !this.#stopping.aborted; ) {
      if (this.feed.peek() !== undefined) return true;
      if (this.feed.isCaughtUp) this.#turn.leave();
      try {
        await (this.feed.isCaughtUp ? this.feed.woken(this.#stopping) : this.feed.catchUp(this.#stopping));
      } catch (error) {
        failures += 1;
        await this.#onUnread(error, failures);
      }
    }
    return false;
  }

  async #onUnread(error: unknown, failures: number): Promise<void> {
    this.#turn.leave();
    reportUnread(this.#options, this.#task.subscription, error);
    await pauseAfter(this.#options, failures, this.#stopping);
  }
}
