import type { GroupId } from "../../domain/group-id.ts";
import type { Interest } from "../../domain/interest.ts";
import type { Event } from "../../domain/event.ts";
import { eventFilterOf } from "../../domain/shared-filter.ts";
import { matchesFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { pause } from "../../lib/pause.ts";
import type { ShareStore, ShareTake } from "../../ports/share-store.ts";
import type { ShareId } from "../../ports/session-store.ts";
import type { Feed, FeedOrder } from "../dispatch/feed.ts";
import type { RetainedParts } from "./retained.ts";
import type { ShareMember } from "./share-member.ts";
import { SharePlan } from "./share-plan.ts";
import { stuck, Waiting, type WaitingParts } from "./waiting.ts";

export interface ShareParts extends Omit<RetainedParts, "mayReceive">, WaitingParts {
  readonly store: { readonly sessions: ShareStore };
  readonly createFeed: (order: FeedOrder) => Feed;
}

/** Characters of a share that health and the log name. */
const namedCharactersMax = 100;

/** Returned events that one look at the store reads. */
const returnedReadMax = 64;

/**
 * The part of a share that gives events to its members at this node. Each event passes from the share to one of them, in turn, by a transaction of
 * the store, and is given to the client then. Other nodes do the same: where one of them was faster, this one goes on from the share's new place.
 */
export class Share implements Interest {
  readonly #groupId: GroupId;
  readonly #text: TopicFilter;
  readonly #filter: TopicFilter;
  readonly #parts: ShareParts;
  readonly #waiting: Waiting;
  /** The one whose turn is next comes first. */
  readonly #members = new Set<ShareMember>();
  /** Takes that failed, so that nobody knows whether the store has them. */
  #unknown: ShareTake[] = [];
  #mayHaveReturned = true;
  #id: ShareId | undefined;
  #reading: { readonly ending: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(groupId: GroupId, text: TopicFilter, parts: ShareParts) {
    this.#groupId = groupId;
    this.#text = text;
    this.#filter = eventFilterOf(text);
    this.#parts = parts;
    this.#waiting = new Waiting(parts, `share ${text.slice(0, namedCharactersMax)}`);
  }

  readonly only = undefined;

  includes(topic: TopicName): boolean {
    return matchesFilter(this.#filter, topic);
  }

  /** Undefined until it was read. */
  get id(): ShareId | undefined {
    return this.#id;
  }

  get isEmpty(): boolean {
    return this.#members.size === 0;
  }

  add(member: ShareMember): void {
    this.#members.add(member);
    this.wake();
  }

  delete(member: ShareMember): void {
    this.#members.delete(member);
    this.wake();
  }

  /** A member may take an event, or others are members now. */
  wake(): void {
    this.#waiting.wake();
  }

  /** Events may have been returned, by whichever node. */
  look(): void {
    this.#mayHaveReturned = true;
    this.wake();
  }

  /** Starts, or restarts after {@link stop}. The index does not contain anything after the group's progress. */
  start(): void {
    const ending = new AbortController();
    this.#mayHaveReturned = true;
    this.#reading = { ending, ended: this.#run(ending.signal) };
  }

  /** After the answer, and until {@link start}, nothing is given. Never rejects. To be called when no member is left, too. */
  async stop(): Promise<void> {
    const reading = this.#reading;
    if (reading === undefined) return;
    this.#reading = undefined;
    reading.ending.abort();
    this.wake();
    await reading.ended;
  }

  /** Never rejects. */
  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await this.#waiting.untilDone({ what: stuck.live, signal }, () => this.#serve(signal));
  }

  /** Gives events from the share's place on, until that is no longer what it was read as. */
  async #serve(stopped: AbortSignal): Promise<void> {
    const { store, createFeed } = this.#parts;
    await this.#returnUnknown();
    const share = await store.sessions.findShare(this.#groupId, this.#text);
    this.#mayHaveReturned = true;
    this.#id = share?.id;
    this.#waiting.recovered(stuck.live);
    if (stopped.aborted) return;
    if (share === undefined) {
      await this.#waiting.woken(); // its last member has left
      return;
    }
    const ending = new AbortController();
    const signal = AbortSignal.any([stopped, ending.signal]);
    const feed = createFeed({
      filters: [this.#filter],
      interest: this,
      after: share.cursor,
      onPassed: (event) => this.#pass(event),
    });
    const read = this.#read(feed, signal);
    const plan = new SharePlan({ share, feed, members: this.#members });
    try {
      while (!signal.aborted && (await this.#giveNext(plan, signal))) await this.#parts.slices.pause();
    } finally {
      plan.cancel();
      ending.abort();
      feed.close();
      this.wake();
      await read;
    }
  }

  /** Gives an event that is committed nowhere to the next member that has room. */
  #pass(event: Event): void {
    const member = [...this.#members].find(({ hasRoom }) => hasRoom);
    if (member === undefined) return;
    this.#members.delete(member);
    this.#members.add(member);
    member.pass(event);
  }

  /** Sees to it that the feed has events. Never rejects. */
  async #read(feed: Feed, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#waiting.untilDone({ what: stuck.live, signal }, () => feed.more(signal));
      this.wake();
      while (!signal.aborted && feed.peek() !== undefined) await this.#waiting.woken();
    }
  }

  /** Answers whether the plan still holds. */
  async #giveNext(plan: SharePlan, signal: AbortSignal): Promise<boolean> {
    if (this.#mayHaveReturned && plan.wantsReturned) await this.#readReturned(plan, signal);
    if (signal.aborted) return false;
    const take = plan.fill();
    this.wake(); // the feed may have no event any more
    if (take === undefined) {
      await this.#waiting.woken();
      return true;
    }
    const outcome = await this.#take(take);
    if (outcome === "taken") {
      plan.give();
      return true;
    }
    const { clock, limits } = this.#parts;
    // The member's node will soon know its session's epoch, or that it is gone.
    if (outcome === "member-refused") await pause(clock, limits.retryDelayMsMin, signal);
    return false;
  }

  async #take(take: ShareTake) {
    try {
      return await this.#parts.store.sessions.takeShared(take);
    } catch (error) {
      this.#unknown.push(take);
      throw error;
    }
  }

  /** What no client was given goes back to the share, if a failed take had got it. @throws what the store throws. */
  async #returnUnknown(): Promise<void> {
    for (let [take] = this.#unknown; take !== undefined; [take] = this.#unknown) {
      await this.#parts.store.sessions.returnShared(take);
      this.#unknown.shift();
      this.#mayHaveReturned = true;
    }
  }

  async #readReturned(plan: SharePlan, signal: AbortSignal): Promise<void> {
    this.#mayHaveReturned = false;
    const places = await this.#parts.store.sessions.listReturned(plan.id, returnedReadMax);
    if (places.length === returnedReadMax) this.#mayHaveReturned = true;
    for (const place of places) {
      const find = (): Promise<Event | undefined> => this.#parts.retainedReads.find(this.#parts, place, signal);
      const event = await this.#waiting.untilDone({ what: stuck.handedBack, signal }, find);
      if (signal.aborted) return;
      if (event === undefined) plan.drop(place.position);
      else plan.addReturned(event);
    }
  }
}
