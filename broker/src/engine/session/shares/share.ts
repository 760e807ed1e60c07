import type { GroupId } from "../../../domain/group-id.ts";
import type { Interest } from "../../../domain/interest.ts";
import type { Event } from "../../../domain/event.ts";
import { type Position, positionZero } from "../../../domain/position.ts";
import { eventFilterOf } from "../../../domain/shared-filter.ts";
import { matchesFilter, type TopicFilter } from "../../../domain/topic-filter.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { Cancellation, type CancelSignal } from "../../../lib/cancellation.ts";
import { pause } from "../../../lib/pause.ts";
import type { Semaphore } from "../../../lib/semaphore.ts";
import type { ShareStore, ShareTake } from "../../../ports/share-store.ts";
import type { ShareId } from "../../../ports/session-store.ts";
import type { Feed, FeedRequest } from "../../dispatch/feed.ts";
import type { RetainedParts } from "../retained/retained.ts";
import type { ShareMember } from "./share-member.ts";
import { findRoom, SharePlan } from "./share-plan.ts";
import { stuck, Waiting, type WaitingParts } from "../waiting.ts";

export interface ShareParts extends Omit<RetainedParts, "mayReceive">, WaitingParts {
  readonly store: { readonly shares: ShareStore };
  readonly createFeed: (request: FeedRequest) => Feed;
  /** Bounds the reads of a group's shares at this node: a client may connect as a member of a thousand shares, which must not delay the index. */
  readonly reads: Semaphore;
  /** Bounds the takes, for an event that matches a thousand shares. */
  readonly takes: Semaphore;
}

/** Maximum number of characters of a share's name that health and the log show. */
const namedCharactersMax = 100;

/** Maximum number of returned events per read of the store. */
const returnedReadMax = 64;

/**
 * The part of a share that delivers events to its members at this node. A transaction of the store assigns each event to one member, in turn, before it is
 * delivered. Other nodes do the same: if another node was faster, this node continues from the share's new cursor.
 */
export class Share implements Interest {
  readonly #groupId: GroupId;
  readonly #text: TopicFilter;
  readonly #filter: TopicFilter;
  readonly #parts: ShareParts;
  readonly #waiting: Waiting;
  /** Members that may have room. The one whose turn is next comes first. */
  readonly #members = new Set<ShareMember>();
  /** Members that had no room when they were last asked, and have not woken the share since. */
  readonly #full = new Set<ShareMember>();
  /** Failed writes that take events from the share; the store may still have recorded them. */
  #unknown: ShareTake[] = [];
  /** Where the next read of returned events begins; undefined if there are none. */
  #returnedAfter: Position | undefined = positionZero;
  #id: ShareId | undefined;
  #reading: { readonly ending: Cancellation; readonly ended: Promise<void> } | undefined;

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

  /** The share's identifier; undefined until the share was read. */
  get id(): ShareId | undefined {
    return this.#id;
  }

  get isEmpty(): boolean {
    return this.#members.size + this.#full.size === 0;
  }

  add(member: ShareMember): void {
    this.#members.add(member);
    this.wake();
  }

  delete(member: ShareMember): void {
    this.#members.delete(member);
    this.#full.delete(member);
    this.wake();
  }

  /** Continues deliveries. Call it when a member may have room again. */
  wakeFor(member: ShareMember): void {
    if (this.#full.delete(member)) this.#members.add(member);
    this.wake();
  }

  /** Continues deliveries. Call it when the members have changed. */
  wake(): void {
    this.#waiting.wake();
  }

  /** Looks for returned events. Call it when any node may have returned some. */
  checkReturned(): void {
    this.#returnedAfter = positionZero;
    this.wake();
  }

  /** Starts, or restarts after {@link stop}. The index must contain nothing after the group's progress. */
  start(): void {
    const ending = new Cancellation();
    this.#returnedAfter = positionZero;
    this.#reading = { ending, ended: this.#run(ending) };
  }

  /** Ends deliveries permanently. Call it when no member is left. Gives the events of failed takes back to the share, unless `signal` aborts. Never rejects. */
  async close(signal: CancelSignal): Promise<void> {
    await this.stop();
    if (this.#unknown.length === 0) return;
    // Otherwise the store may assign them to former members, whose connections may last long.
    await this.#waiting.untilDone({ what: stuck.handedBack, signal }, () => this.#returnUnknown());
  }

  /** Ends deliveries until {@link start}. Never rejects. */
  async stop(): Promise<void> {
    const reading = this.#reading;
    if (reading === undefined) return;
    this.#reading = undefined;
    reading.ending.abort();
    this.wake();
    await reading.ended;
  }

  /** Never rejects. */
  async #run(signal: CancelSignal): Promise<void> {
    while (!signal.aborted) await this.#waiting.untilDone({ what: stuck.live, signal }, () => this.#serve(signal));
  }

  /** Delivers events from the share's cursor on, until another node has changed the share. */
  async #serve(stopped: CancelSignal): Promise<void> {
    const { store, reads, createFeed } = this.#parts;
    await this.#returnUnknown();
    const share = await reads.run(() => store.shares.findShare(this.#groupId, this.#text), stopped);
    this.#returnedAfter = positionZero;
    this.#id = share?.id;
    this.#waiting.recovered(stuck.live);
    if (stopped.aborted) return;
    if (share === undefined) {
      await this.#waiting.woken(); // Its last member has left.
      return;
    }
    // No AbortSignal.any: up to Node 22, the older signal keeps a part of each combined one, and other nodes end this loop many times a second.
    const signal = new Cancellation();
    const end = (): void => signal.abort();
    stopped.addEventListener("abort", end);
    const feed = createFeed({
      filters: [this.#filter],
      interest: this,
      after: share.cursor,
      onPassed: (event) => this.#pass(event),
    });
    const read = this.#read(feed, signal);
    const plan = new SharePlan({ share, feed, members: this.#members, full: this.#full });
    try {
      while (!signal.aborted && (await this.#giveNext(plan, signal))) await this.#parts.slices.pause();
    } finally {
      plan.cancel();
      stopped.removeEventListener("abort", end);
      signal.abort();
      feed.close();
      this.wake();
      await read;
    }
  }

  /** Passes an event that is never committed to the next member with room. */
  #pass(event: Event): void {
    const member = findRoom(this.#members, this.#full);
    if (member === undefined) return;
    this.#members.delete(member);
    this.#members.add(member);
    member.pass(event);
  }

  /** Refills the feed whenever it is empty. Never rejects. */
  async #read(feed: Feed, signal: CancelSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#waiting.untilDone({ what: stuck.live, signal }, () => feed.more(signal));
      this.wake();
      while (!signal.aborted && feed.peek() !== undefined) await this.#waiting.woken();
    }
  }

  /** Delivers the next events. Returns whether the plan still holds. */
  async #giveNext(plan: SharePlan, signal: CancelSignal): Promise<boolean> {
    if (this.#returnedAfter !== undefined && plan.wantsReturned) await this.#readReturned(plan, signal);
    if (signal.aborted) return false;
    const take = plan.fill();
    this.wake(); // The feed may be empty now.
    if (take === undefined) {
      await this.#waiting.woken();
      return true;
    }
    const outcome = await this.#parts.takes.run(() => this.#take(take), signal);
    if (outcome === undefined) return false;
    if (outcome === "taken") {
      plan.give();
      return true;
    }
    const { clock, limits } = this.#parts;
    // This node will soon know the member's new epoch, or that its session is gone.
    if (outcome === "member-refused") await pause(clock, limits.retryDelayMsMin, signal);
    return false;
  }

  async #take(take: ShareTake) {
    try {
      return await this.#parts.store.shares.takeShared(take);
    } catch (error) {
      this.#unknown.push(take);
      throw error;
    }
  }

  /**
   * Returns the events in `gifts` of failed takes to the share, because no client got them. New events for members with QoS 0 are not in `gifts`: they are lost
   * if the store has recorded the take. @throws what the store throws.
   */
  async #returnUnknown(): Promise<void> {
    for (let [take] = this.#unknown; take !== undefined; [take] = this.#unknown) {
      await this.#parts.store.shares.returnShared(take);
      this.#unknown.shift();
      this.#returnedAfter = positionZero;
    }
  }

  async #readReturned(plan: SharePlan, signal: CancelSignal): Promise<void> {
    const { store, reads } = this.#parts;
    const page = { after: this.#returnedAfter ?? positionZero, atMost: returnedReadMax };
    this.#returnedAfter = undefined;
    const places = await reads.run(() => store.shares.listReturned(plan.id, page), signal);
    if (places === undefined) return;
    // Continue after this page: from the start, the store would check all earlier events again. If `checkReturned` has set the start meanwhile, keep it.
    if (places.length === returnedReadMax) this.#returnedAfter ??= places.at(-1)?.position;
    for (const place of places) {
      const find = (): Promise<Event | undefined> => this.#parts.retainedReads.find(this.#parts, place, signal);
      const event = await this.#waiting.untilDone({ what: stuck.handedBack, signal }, find);
      if (signal.aborted) return;
      if (event === undefined) plan.drop(place.position);
      else plan.addReturned(event);
    }
  }
}
