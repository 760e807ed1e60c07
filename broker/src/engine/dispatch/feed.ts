import { type Event, type EventBatch, isDropped, lastPositionOf } from "../../domain/event.ts";
import { advance, before, endOfBlock, type Position } from "../../domain/position.ts";
import type { Interest } from "../../domain/interest.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { IndexProgress } from "../index-progress.ts";
import { eventsOf } from "../batch-events.ts";
import type { EngineLimits } from "../limits.ts";
import type { FeedHub } from "./feed-hub.ts";
import type { Reader } from "./reader.ts";
import type { Holder } from "./held-batches.ts";
import { memoryOf, type Page, type RecentBatches } from "./recent-batches.ts";
import { LazySet } from "../../lib/lazy-collections.ts";

/** The events that a reader wants from its feed. */
export interface FeedRequest {
  /** Filters under which the hub offers batches. */
  readonly filters: Iterable<TopicFilter>;
  /** The topics to take when the feed reads from the store. */
  readonly interest: Interest;
  /** The feed begins after this position. */
  readonly after: Position;
  /** Called after each read that succeeded. */
  readonly onRead?: (() => void) | undefined;
  /** Called with an event that is not committed to the chain, and its matching filters; if left out, the reader gets no such events. */
  readonly onPassed?: ((event: Event, filters: readonly TopicFilter[]) => void) | undefined;
}

export interface FeedOptions extends FeedRequest {
  readonly groupId: GroupId;
  readonly hub: FeedHub;
  /** Shared by all feeds of a node. */
  readonly recent: RecentBatches;
  readonly slices: TimeSlices;
  readonly progress: IndexProgress;
  readonly limits: EngineLimits;
  /** Whether the subscriber may receive events of a topic; it may receive all if left out. */
  readonly mayReceive?: ((topic: TopicName) => boolean) | undefined;
  /** Reads the generation of the index from the store; undefined if the broker is a single node. */
  readonly findGeneration?: (() => Promise<number>) | undefined;
}

/** Estimated memory of a queued batch without its encoded events. */
const batchBytes = 512;

/** Waiting events of one batch: the first and last index in the batch, both inclusive. */
interface Slice {
  readonly batch: EventBatch;
  from: number;
  readonly to: number;
}

/**
 * The events of one subscription or session, in order, each once. {@link peek} and {@link advance} are synchronous. Without an event, the reader
 * calls {@link catchUp}, or {@link woken} once the feed {@link isCaughtUp}; {@link more} does both.
 *
 * A feed queues references to batches. While it keeps up, the hub offers it each indexed batch (`live`). When more than `feedEventsMax` events or
 * `feedBytesMax` bytes would wait, or more than its share of what all feeds may queue, it leaves the live feed and reads one batch after another from the
 * store until it has caught up (`behind`).
 *
 * The change between the two modes loses and repeats no event: every matching event up to `#queuedUpTo` was queued. A feed joins the live feed only in the
 * turn in which `#queuedUpTo` is the end of the newest indexed block, and an offer always begins after that block.
 *
 * A feed that is behind may have to drop its queue between two turns (see `HeldBatches`). Then `peek` returns no event until `catchUp` has read again.
 *
 * If another node can roll the index back, `after` may belong to a generation that this node has not seen yet. So the feed reads nothing until the store
 * and this node's progress have the same generation. When the generation changes later, the reader is restarted with a new feed.
 */
export class Feed implements Reader, Holder {
  readonly #options: FeedOptions;
  readonly #filters: LazySet<TopicFilter>;
  #mode: "live" | "behind" = "behind";
  #queuedUpTo: Position;
  readonly #queue: Slice[] = [];
  #queuedEvents = 0;
  /** Encoded bytes of the queued batches. */
  #queuedBytes = 0;
  /** Memory of the queued batches. */
  #keptBytes = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;
  #isConfirmed: boolean;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#filters = new LazySet(options.filters);
    this.#queuedUpTo = options.after;
    this.#isConfirmed = options.findGeneration === undefined;
    options.hub.attach(options.groupId, this);
    for (const filter of this.#filters) options.hub.addFilter(options.groupId, filter, this);
  }

  /** The reader has passed every matching event up to this position. */
  get position(): Position {
    const [next] = this.#queue;
    return next === undefined ? this.end : before(advance(next.batch.firstPosition, next.from));
  }

  /** Every matching event up to this position was queued. A filter that is added now gets later ones. */
  get end(): Position {
    return this.#mode === "live" ? maxOf(this.#indexedUpTo(), this.#queuedUpTo) : this.#queuedUpTo;
  }

  /** Whether the reader has passed every indexed event. */
  get isCaughtUp(): boolean {
    return this.#mode === "live" && this.#queue.length === 0;
  }

  /** The next event; undefined if none is in memory: see {@link catchUp} and {@link woken}. Passes queued events that the subscriber may not receive any more. */
  peek(): Event | undefined {
    for (let [next] = this.#queue; next !== undefined; [next] = this.#queue) {
      if (this.#mayReceive(next.batch.topic)) return eventsOf(next.batch)[next.from];
      this.#pass(next, next.to + 1 - next.from);
    }
    return undefined;
  }

  /** Passes the event that {@link peek} returns. */
  advance(): void {
    const [next] = this.#queue;
    if (next !== undefined) this.#pass(next, 1);
  }

  /** Waits until {@link peek} has an event, or `signal` aborts. @throws what the store throws; call it again then. */
  async more(signal: CancelSignal): Promise<void> {
    while (this.#queue.length === 0 && !signal.aborted) {
      if (this.isCaughtUp) await this.woken(signal);
      else await this.catchUp(signal);
    }
  }

  /** Waits until {@link peek} has an event, {@link isCaughtUp} is true, or `signal` aborts. @throws what the store throws; call it again then. */
  async catchUp(signal: CancelSignal): Promise<void> {
    while (this.#queue.length === 0 && this.#mode === "behind" && !signal.aborted) {
      if (this.#isConfirmed) await this.#readOn(signal);
      else await this.#confirm(signal);
    }
  }

  /** Waits until there may be new events, or `signal` aborts; for a feed that {@link isCaughtUp}. Costs little memory: one promise. */
  woken(signal: CancelSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        signal.removeEventListener("abort", settle);
        resolve();
      };
      signal.addEventListener("abort", settle, { once: true });
      this.#wake = settle;
    });
  }

  addFilter(filter: TopicFilter): void {
    const { hub, groupId } = this.#options;
    this.#filters.add(filter);
    hub.addFilter(groupId, filter, this);
  }

  removeFilter(filter: TopicFilter): void {
    const { hub, groupId } = this.#options;
    if (this.#filters.delete(filter)) hub.removeFilter(groupId, filter, this);
  }

  /** Detaches the feed from the hub. Batches that are indexed later do not count as passed. */
  close(): void {
    const { hub, groupId } = this.#options;
    for (const filter of this.#filters) hub.removeFilter(groupId, filter, this);
    this.#filters.clear();
    hub.detach(groupId, this);
    this.#isClosed = true;
    this.fallBehind();
  }

  offer(batch: EventBatch): void {
    if (this.#mode !== "live" || lastPositionOf(batch) <= this.#queuedUpTo || !this.#mayReceive(batch.topic)) return;
    if (this.#isTooMuch(batch)) {
      this.#queuedUpTo = maxOf(this.#queuedUpTo, before(batch.firstPosition));
      this.#mode = "behind";
      this.#hold();
    } else this.#push(batch);
  }

  pass(event: Event, filters: readonly TopicFilter[]): void {
    if (this.#mayReceive(event.topic)) this.#options.onPassed?.(event, filters);
  }

  fallBehind(): void {
    this.#queuedUpTo = this.end;
    this.#mode = "behind";
    this.#hold();
  }

  letGo(): void {
    this.#queuedUpTo = this.position;
    this.#queue.length = 0;
    this.#queuedEvents = 0;
    this.#queuedBytes = 0;
    this.#keptBytes = 0;
  }

  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #isTooMuch({ count, events }: EventBatch): boolean {
    const { limits, hub } = this.#options;
    const bytes = this.#queuedBytes + events.byteLength;
    if (this.#queuedEvents + count > limits.feedEventsMax || bytes > limits.feedBytesMax) return true;
    // While their receivers are down, tens of thousands of readers take nothing, and each may have a topic of its own.
    const keptBytes = bytes + (this.#queue.length + 1) * batchBytes;
    return this.#queue.length > 0 && keptBytes > hub.shareOf(limits.liveBytesMax);
  }

  /** Removes events from the front of the queue. */
  #pass(next: Slice, count: number): void {
    next.from += count;
    this.#queuedEvents -= count;
    if (next.from <= next.to) return;
    this.#queue.shift();
    this.#queuedBytes -= next.batch.events.byteLength;
    this.#keptBytes -= memoryOf(next.batch);
    this.#hold();
  }

  /**
   * Queues the new events of a batch. Some of its events may be old: the feed's position may be ahead of an index that is being rebuilt, or of this node's
   * progress.
   */
  #push(batch: EventBatch): void {
    const from = Math.max(0, this.#queuedUpTo + 1 - batch.firstPosition);
    const to = batch.count - 1;
    this.#queue.push({ batch, from, to });
    this.#queuedEvents += to - from + 1;
    this.#queuedBytes += batch.events.byteLength;
    this.#keptBytes += memoryOf(batch);
    this.#queuedUpTo = lastPositionOf(batch);
    this.#hold();
  }

  /** Reports the memory of the queue to `HeldBatches`. A live feed reports nothing: live feeds share their batches. */
  #hold(): void {
    if (this.#mode === "behind") this.#options.recent.held.hold(this, this.#isClosed ? 0 : this.#keptBytes);
  }

  /** Compares the generations of the store and of this node. The store's generation is lower if the database lost a part of the index. */
  async #confirm(signal: CancelSignal): Promise<void> {
    const { findGeneration, progress } = this.#options;
    const own = progress.generation;
    const stored = (await findGeneration?.()) ?? own;
    if (own !== progress.generation) return; // it changed during the read: compare again
    this.#isConfirmed = stored === own;
    if (!this.#isConfirmed) await this.woken(signal);
  }

  /** Joins the live feed if everything is read, else queues the next batch. */
  async #readOn(signal: CancelSignal): Promise<void> {
    const { recent, groupId, interest, progress, onRead } = this.#options;
    const after = this.#queuedUpTo;
    const upTo = this.#indexedUpTo();
    if (after >= upTo) {
      this.#mode = "live";
      return;
    }
    const isWanted = (batchTopic: TopicName): boolean => this.#isWanted(batchTopic);
    const place = { groupId, topic: interest.only, after, upTo, progress, version: progress.version, isWanted };
    const page = recent.find(place) ?? (await recent.read(place, signal));
    if (page === undefined) return;
    onRead?.();
    await this.#takeNext(page, signal);
  }

  /** Queues the next batch of a page. Pauses at each step: thousands of feeds may search pages in memory at once, which would block the event loop. */
  async #takeNext(page: Page, signal: CancelSignal): Promise<void> {
    for (const batch of page.batches) {
      if (lastPositionOf(batch) <= this.#queuedUpTo) continue;
      await this.#options.slices.pause();
      if (signal.aborted) return;
      if (this.#isWanted(batch.topic)) {
        // Its events were not read if the filters or rights have changed since: then read again.
        if (!isDropped(batch)) this.#push(batch);
        return;
      }
      this.#queuedUpTo = lastPositionOf(batch);
    }
    this.#queuedUpTo = maxOf(this.#queuedUpTo, page.upTo);
  }

  #isWanted(topic: TopicName): boolean {
    return this.#options.interest.includes(topic) && this.#mayReceive(topic);
  }

  #mayReceive(topic: TopicName): boolean {
    return this.#options.mayReceive?.(topic) !== false;
  }

  #indexedUpTo(): Position {
    return endOfBlock(Math.max(0, this.#options.progress.blockNumber));
  }
}

function maxOf(left: Position, right: Position): Position {
  return left > right ? left : right;
}
