import type { Event, EventBatch } from "../../domain/event.ts";
import { before, endOfBlock, type Position } from "../../domain/position.ts";
import type { Interest } from "../../domain/interest.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { IndexProgress } from "../index-progress.ts";
import { eventsOf } from "../batch-events.ts";
import type { EngineLimits } from "../limits.ts";
import type { Page, RecentBatches } from "./recent-batches.ts";

/** Events that stay in the queue after they were taken: a queue under steady load is never empty, and must let go of them all the same. */
const consumedKeptMax = 128;

export interface FeedParts {
  readonly groupId: GroupId;
  readonly interest: Interest;
  /** Feeding begins after this position. */
  readonly after: Position;
  /** Shared by all feeds of a node. */
  readonly recent: RecentBatches;
  readonly progress: IndexProgress;
  readonly limits: EngineLimits;
  /** Called after each read that succeeded. */
  readonly onRead?: (() => void) | undefined;
  /** Whether events of a topic may reach the subscriber; all may when left out. */
  readonly mayReceive?: ((topic: TopicName) => boolean) | undefined;
  /** Reads the index's generation, where nodes share the store. */
  readonly findGeneration?: (() => Promise<number>) | undefined;
}

/**
 * The events of one subscription or session, in order, each once. While it keeps up it is fed from memory (`live`); when more than
 * `feedEventsMax` events or `feedBytesMax` bytes would wait, it leaves the live feed, and takes one event after the other from what is read
 * for all that are behind, until it has caught up (`behind`).
 *
 * The seam: `#fedUpTo` is the position up to which every matching event was queued. A feed joins the live feed only in the same turn
 * in which `#fedUpTo` is seen to be the end of the newest indexed block, and an offer always begins after that block.
 *
 * Where another node may take the index back, `after` may be of an index that this node has not seen yet. So nothing is fed before the
 * generation in the store was seen to be the one of this node's progress: whoever changes that one later, restarts the feed.
 */
export class Feed {
  readonly #parts: FeedParts;
  #mode: "live" | "behind" = "behind";
  #fedUpTo: Position;
  #queue: Event[] = [];
  #next = 0;
  /** Bytes of the contents that wait. */
  #queuedBytes = 0;
  #taken: Event | undefined;
  #wake: (() => void) | undefined;
  #isConfirmed: boolean;

  constructor(parts: FeedParts) {
    this.#parts = parts;
    this.#fedUpTo = parts.after;
    this.#isConfirmed = parts.findGeneration === undefined;
  }

  /** Position up to which everything is done when the queue is empty: there is no matching event between the last one fed and here. */
  get fedUpTo(): Position {
    return this.#mode === "live" ? maxOf(this.#indexedUpTo(), this.#fedUpTo) : this.#fedUpTo;
  }

  get isLive(): boolean {
    return this.#mode === "live";
  }

  get isEmpty(): boolean {
    return this.#next >= this.#queue.length;
  }

  /** The event that was given last. */
  get taken(): Event | undefined {
    return this.#taken;
  }

  /** Offers a batch that was just indexed and matches the filter. */
  offer(batch: EventBatch): void {
    if (this.#mode === "live" && this.#mayReceive(batch.topic)) this.#take(batch);
    this.#rouse();
  }

  /** Nothing is offered from now on: what is indexed later is not fed, and so must not count as passed. */
  leave(): void {
    this.#fedUpTo = this.fedUpTo;
    this.#mode = "behind";
  }

  /** What is indexed next is not offered, but read from the store. To be called in the turn in which the progress moves. */
  fallBehind(): void {
    this.leave();
    this.#rouse();
  }

  /** The next event; undefined when `signal` aborts. */
  async next(signal: AbortSignal): Promise<Event | undefined> {
    while (!signal.aborted) {
      const event = this.#shift();
      if (event !== undefined) return event;
      if (this.#mode === "live") await this.#waitForOffer(signal);
      else if (!this.#isConfirmed) await this.#confirm(signal);
      else await this.#catchUp(signal);
    }
    return undefined;
  }

  #take(batch: EventBatch): void {
    const { feedEventsMax, feedBytesMax } = this.#parts.limits;
    const count = this.#queue.length - this.#next + batch.count;
    if (count > feedEventsMax || this.#queuedBytes + batch.events.byteLength > feedBytesMax) {
      this.#mode = "behind";
      this.#fedUpTo = maxOf(this.#fedUpTo, before(batch.firstPosition));
      return;
    }
    // A cursor may be ahead of an index that is being rebuilt, or that another node is ahead with.
    const isNew = batch.firstPosition > this.#fedUpTo;
    this.#push(isNew ? eventsOf(batch) : eventsOf(batch).filter(({ position }) => position > this.#fedUpTo));
  }

  #push(events: readonly Event[]): void {
    for (const event of events) {
      this.#queue.push(event);
      this.#queuedBytes += event.content.byteLength;
    }
  }

  #shift(): Event | undefined {
    const event = this.#queue[this.#next];
    if (event === undefined) {
      this.#queue = [];
      this.#next = 0;
      return undefined;
    }
    this.#taken = event;
    this.#next += 1;
    this.#queuedBytes -= event.content.byteLength;
    if (this.#next === consumedKeptMax) {
      this.#queue = this.#queue.slice(consumedKeptMax);
      this.#next = 0;
    }
    return event;
  }

  /** A database that lost a part of the index has a lower generation. What was read while this node's own one changed says nothing. */
  async #confirm(signal: AbortSignal): Promise<void> {
    const { findGeneration, progress } = this.#parts;
    const own = progress.generation;
    const stored = (await findGeneration?.()) ?? own;
    if (own !== progress.generation) return;
    this.#isConfirmed = stored === own;
    if (!this.#isConfirmed) await this.#waitForOffer(signal);
  }

  /** Joins the live feed when everything is read, else takes what comes next. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const { recent, groupId, interest, progress, onRead } = this.#parts;
    const after = this.#fedUpTo;
    const upTo = this.#indexedUpTo();
    if (after >= upTo) {
      this.#mode = "live";
      return;
    }
    const place = { groupId, topic: interest.only, after, upTo, progress, version: progress.version };
    const page = recent.find(place) ?? (await recent.read(place, signal));
    if (page === undefined) return;
    onRead?.();
    this.#takeNext(page);
  }

  #takeNext(page: Page): void {
    const event = firstAfter(this.#fedUpTo, { page, isWanted: (topic) => this.#isWanted(topic) });
    if (event !== undefined) this.#push([event]);
    this.#fedUpTo = event?.position ?? page.upTo;
  }

  #isWanted(topic: TopicName): boolean {
    return this.#parts.interest.includes(topic) && this.#mayReceive(topic);
  }

  #mayReceive(topic: TopicName): boolean {
    return this.#parts.mayReceive?.(topic) !== false;
  }

  #indexedUpTo(): Position {
    return endOfBlock(Math.max(0, this.#parts.progress.blockNumber));
  }

  #rouse(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #waitForOffer(signal: AbortSignal): Promise<void> {
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
}

function maxOf(left: Position, right: Position): Position {
  return left > right ? left : right;
}

/** The page's first event after a position that the filter matches. */
function firstAfter(
  after: Position,
  { page, isWanted }: { readonly page: Page; readonly isWanted: (topic: TopicName) => boolean },
): Event | undefined {
  const { batches, upTo } = page;
  const isNext = ({ firstPosition, count, topic }: EventBatch): boolean =>
    firstPosition + count > after + 1 && isWanted(topic);
  const batch = batches.find(isNext);
  if (batch === undefined) return undefined;
  const event = eventsOf(batch)[Math.max(0, after + 1 - batch.firstPosition)];
  return event !== undefined && event.position <= upTo ? event : undefined;
}
