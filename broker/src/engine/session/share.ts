import type { InFlight } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Interest } from "../../domain/interest.ts";
import { endOfBlock, type Position } from "../../domain/position.ts";
import { matchesFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Feed, FeedOrder } from "../dispatch/feed.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { Reading } from "./connection.ts";
import { findEvent, type RetainedParts } from "./retained.ts";
import { Waiting, type WaitingParts } from "./waiting.ts";

/** A session, as a share sees it. */
export interface ShareMember {
  mayReceive(topic: TopicName): boolean;
  /** Whether it takes an event now. It calls {@link Share.wake} once it does again. */
  readonly hasRoom: boolean;
  /** To be called only while it has room. */
  give(event: Event): void;
}

/** Where an event is that a member had and did not acknowledge. */
export type SharePlace = Pick<InFlight, "topic" | "position">;

export interface ShareParts extends RetainedParts, WaitingParts {
  readonly progress: IndexProgress;
  readonly createFeed: (order: FeedOrder) => Feed;
}

/**
 * A stream of events with several members: each event is given to one of them, in turn, and to another one if that one hands it back. While no member
 * has room, the share waits; it begins with the events after the newest indexed one.
 */
export class Share implements Interest {
  readonly #filter: TopicFilter;
  readonly #parts: ShareParts;
  readonly #waiting: Waiting;
  /** The one whose turn is next comes first. */
  readonly #members = new Set<ShareMember>();
  /** Events that members handed back, in the order in which they did. */
  readonly #returned = new Map<Position, SharePlace>();
  /** Every event up to here was given to a member, or passed. */
  #givenUpTo: Position;
  #reading: Reading | undefined;

  constructor(filter: TopicFilter, parts: ShareParts) {
    this.#filter = filter;
    this.#parts = parts;
    this.#waiting = new Waiting(parts);
    this.#givenUpTo = this.#indexedUpTo();
  }

  readonly only = undefined;

  includes(topic: TopicName): boolean {
    return matchesFilter(this.#filter, topic);
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  /** Whether any member may get events of a topic. */
  mayReceive(topic: TopicName): boolean {
    return this.#candidates(topic).length > 0;
  }

  add(member: ShareMember): void {
    this.#members.add(member);
    this.wake();
  }

  delete(member: ShareMember): void {
    this.#members.delete(member);
    this.wake();
  }

  /** Gives an event to another member, or to the same one again, that a member had and did not acknowledge. */
  takeBack(place: SharePlace): void {
    this.#returned.set(place.position, place);
    this.wake();
  }

  /** A member may take an event, or others are members now. */
  wake(): void {
    this.#waiting.wake();
  }

  /** Starts, or restarts after {@link stop}. The index does not contain anything after the group's progress. */
  start(): void {
    const to = this.#indexedUpTo();
    if (this.#givenUpTo > to) this.#givenUpTo = to;
    for (const position of this.#returned.keys()) if (position > to) this.#returned.delete(position);
    const feed = this.#parts.createFeed({ filters: [this.#filter], interest: this, after: this.#givenUpTo });
    const ending = new AbortController();
    const { signal } = ending;
    const failed = (error: unknown): void => this.#parts.logger.error("delivery to a share failed", { error });
    const loops = [this.#run(feed, signal), this.#runReturned(signal)];
    this.#reading = { feed, ending, ended: Promise.all(loops.map(async (loop) => loop.catch(failed))) };
  }

  /** After the answer, and until {@link start}, nothing is given. Never rejects. To be called when no member is left, too. */
  async stop(): Promise<void> {
    const reading = this.#reading;
    if (reading === undefined) return;
    this.#reading = undefined;
    reading.ending.abort();
    reading.feed.close();
    this.#givenUpTo = reading.feed.position;
    this.wake();
    await reading.ended;
  }

  async #run(feed: Feed, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#waiting.forRead(signal, () => feed.more(signal));
      while (!signal.aborted && (this.#returned.size > 0 || !this.#giveNext(feed))) await this.#waiting.woken();
      await this.#parts.slices.pause();
    }
  }

  #giveNext(feed: Feed): boolean {
    const event = feed.peek();
    if (event !== undefined && !this.#give(event)) return false;
    feed.advance();
    return true;
  }

  async #runReturned(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const [place] = this.#returned.values();
      if (place === undefined) {
        await this.#waiting.woken();
        continue;
      }
      const event = await this.#waiting.forRead(signal, () => findEvent(this.#parts, place));
      while (!signal.aborted && !this.#giveReturned(place, event)) await this.#waiting.woken();
      this.wake();
      await this.#parts.slices.pause();
    }
  }

  /** There is no event where the chain took it back. A member may hand back an event while it is given. */
  #giveReturned(place: SharePlace, event: Event | undefined): boolean {
    this.#returned.delete(place.position);
    if (event === undefined || this.#give(event)) return true;
    this.#returned.set(place.position, place);
    return false;
  }

  /** Answers whether a member took the event, or no member may have it. */
  #give(event: Event): boolean {
    const candidates = this.#candidates(event.topic);
    if (candidates.length === 0) return !this.isEmpty;
    const member = candidates.find(({ hasRoom }) => hasRoom);
    if (member === undefined) return false;
    this.#members.delete(member); // the others come first now
    this.#members.add(member);
    member.give(event);
    return true;
  }

  #candidates(topic: TopicName): readonly ShareMember[] {
    return [...this.#members].filter((member) => member.mayReceive(topic));
  }

  #indexedUpTo(): Position {
    return endOfBlock(Math.max(0, this.#parts.progress.blockNumber));
  }
}
