import type { Event, EventBatch } from "../domain/event.ts";
import type { GroupId } from "../domain/group-id.ts";
import type { Position } from "../domain/position.ts";
import type { Subscription, SubscriptionId, SubscriptionState } from "../domain/subscription.ts";
import type { Address, Hash, Topic } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { VanishedBatch } from "../domain/vanished-events.ts";
import type { GroupLease, SubscriptionKey } from "./coordinator.ts";
import type { BatchFault, BlockRef } from "./ledger.ts";

/** Why an entry of the chain was left out of the index. */
export type SkipReason =
  | BatchFault
  | "topic-name-refused"
  | "topic-name-taken"
  | "topic-not-indexed"
  | "block-full"
  | "sequence-too-high";

/** Something on the chain that was left out of the index: who finds the transaction finds who wrote it. */
export interface SkippedEntry {
  readonly code: SkipReason;
  /** The code in words, with what was found. */
  readonly reason: string;
  /** The topic contract. */
  readonly address: Address;
  readonly blockNumber: number;
  readonly transactionHash: Hash;
  readonly logIndex: number;
}

/** What one final block changes in the index. The engine makes it from a ledger's block; all of it is well-formed. */
export interface IndexedBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly opened: readonly Topic[];
  /** Topics closed (true) or reopened (false), in order. */
  readonly closed: readonly { readonly name: TopicName; readonly closed: boolean }[];
  readonly batches: readonly EventBatch[];
  /** Sequences taken by malformed batches: the topic's sequence moves past them, no event is stored. */
  readonly skipped: readonly { readonly name: TopicName; readonly firstSequence: number; readonly count: number }[];
  /** What was left out, in the order of the chain; undefined where nothing was. */
  readonly leftOut?: readonly SkippedEntry[];
}

/** How far a group's index is. */
export interface IndexHead {
  readonly blockNumber: number;
  readonly hash: Hash;
  /** Times that the index went back; what was read under another one may be gone. */
  readonly generation: number;
}

/** How far a group's index went back. */
export interface RollBack {
  /** Batches that are no longer on the chain, ascending: all of them, since cursors and counts are set back by where each batch was. */
  readonly vanished: readonly VanishedBatch[];
  /** Events in them. */
  readonly eventCount: number;
  /** Topics whose opening is no longer on the chain. */
  readonly topicCount: number;
}

/** An event by what its identifier says. */
export interface EventPlace {
  /** See topicDigest in wire. */
  readonly digest: string;
  readonly sequence: number;
  readonly blockNumber: number;
}

/**
 * Block numbers below the head for which the index remembers what they changed, so that it can go back. What one way back takes is held in
 * memory whole, about 250 bytes for each batch whatever is in it: 25 MiB for 100,000 batches, and three times that while it is read.
 */
export const reorganisationBlocksMax = 4096;

/** Batches that are remembered after a reorganisation took them; the oldest make room. */
export const vanishedBatchesMax = 10_000;

/** Entries left out of the index that are remembered of a group; the oldest make room. */
export const skippedEntriesMax = 10_000;

/** A page of topics in the order in which they were opened. */
export interface TopicPage {
  readonly total: number;
  readonly topics: readonly Topic[];
}

/** What to read: batches that hold an event after `after` and up to `upTo`, both positions, of one topic or of all. */
export interface BatchRange {
  readonly after: Position;
  readonly upTo: Position;
  readonly topic: TopicName | undefined;
  /** At most this many batches; at least one where there is any. */
  readonly batchesMax: number;
  /** Stops after the batch with which the encoded bytes reach this. */
  readonly bytesMax: number;
}

/** A position that somebody has reached in a topic. */
export interface TopicPlace {
  readonly topic: TopicName;
  readonly after: Position;
}

/** A stretch of the index: events after `after` and up to `upTo`, both positions. */
export interface Stretch {
  readonly after: Position;
  readonly upTo: Position;
  /** At most this many batches are counted; at least one where there is any. */
  readonly batchesMax: number;
}

/** Events of a stretch by topic. */
export interface StretchCounts {
  /** Each topic once, in any order. */
  readonly counts: readonly { readonly topic: TopicName; readonly count: number }[];
  /** How far they were counted: the end of the stretch, or of the last batch that was counted. */
  readonly upTo: Position;
}

/** A page of subscriptions in the order of their identifiers. */
export interface SubscriptionPage {
  /** Begins after this identifier; undefined for the first page. */
  readonly after: SubscriptionId | undefined;
  readonly limit: number;
}

/** The progress of one subscription, as it is written in groups. */
export interface Progress extends SubscriptionKey {
  readonly cursor: Position;
  readonly notifiedCount: number;
  readonly notifiedAt: number;
  readonly failedAttempts: number;
  readonly failedMs: number;
}

export interface ApplyOptions {
  readonly isFinal: boolean;
  readonly lease?: GroupLease | undefined;
  /** The block that they follow, where the store may have lost what it had confirmed: then a head that is another is refused. */
  readonly after?: BlockRef | undefined;
}

/** What became of an insertion. */
export type InsertOutcome = "inserted" | "taken" | "went-back";

/** A write of a follower that is no longer the group's. */
export class LeaseLostError extends Error {
  constructor(groupId: GroupId) {
    super(`another node follows group ${groupId} by now`);
    this.name = "LeaseLostError";
  }
}

/** Rows of the index that are not as they were written, or are missing: nothing was answered from them. */
export class IndexDamagedError extends Error {
  /** Blocks among which those are that the rows were made from; empty where nobody can tell. */
  readonly blocks: readonly number[];

  constructor(what: string, blocks: readonly number[]) {
    super(`the index is damaged: ${what}`);
    this.name = "IndexDamagedError";
    this.blocks = blocks;
  }
}

/** Blocks that an {@link IndexDamagedError} names, at most. */
export const damagedBlocksMax = 64;

/**
 * What the broker keeps beside the chain: an index that can be rebuilt from it, and subscriptions, which cannot.
 *
 * Guarantees: each call is one transaction. What changes a subscription's existence, address or state is on disk when the call
 * answers; the index and the progress may lag behind the disk on a power cut (not on a kill), since the chain has the truth and a
 * repeated delivery is allowed.
 */
export interface Store {
  /** Opens, and migrates forward. */
  start(): Promise<void>;
  stop(): Promise<void>;

  findHead(groupId: GroupId): Promise<IndexHead | undefined>;
  /**
   * Applies blocks in their order and moves the head to the last, wholly or not at all. Blocks must follow the head. Of blocks that
   * are not `isFinal` (the default) enough is kept to go back. Where nodes share the store, the `lease` must be the newest.
   * @throws LeaseLostError
   */
  applyBlocks(groupId: GroupId, blocks: readonly IndexedBlock[], options?: ApplyOptions): Promise<void>;
  /**
   * Blocks to which the group's index can go back, newest first: the head, and the applied blocks of the newest
   * {@link reorganisationBlocksMax} numbers with the one before them. `below` leaves out that number and higher ones.
   */
  listBlocks(
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]>;
  /**
   * Goes back to one of {@link listBlocks}, or to the empty index: what later blocks changed is undone, cursors beyond are set back to
   * its end, and what was acknowledged beyond is no longer counted as notified. What vanished is remembered for {@link findVanished}.
   * With a `lease`, the subscriptions of other nodes get a new epoch, so that no cursor beyond comes back.
   * @throws LeaseLostError
   */
  rollBack(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): Promise<RollBack>;
  /** The batch that held an event which a reorganisation took; undefined when there was none, or it is forgotten. */
  findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined>;

  /**
   * What was left out of the indexed blocks, newest first: of the newest {@link skippedEntriesMax}, at most so many. What a reorganisation
   * takes back is no longer among them.
   */
  listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]>;

  findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined>;
  /** Those that there are, in any order: one look at the index, however many are asked for. */
  findTopics(groupId: GroupId, names: readonly TopicName[]): Promise<readonly Topic[]>;
  /** The same by their contracts. */
  findTopicsByAddress(groupId: GroupId, addresses: readonly Address[]): Promise<readonly Topic[]>;
  listTopics(groupId: GroupId, page: { readonly offset: number; readonly limit: number }): Promise<TopicPage>;
  /** Every topic whose name has this digest (see topicDigest in wire); most often one. */
  findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]>;

  /** The batch that holds an event, by its topic and sequence. @throws IndexDamagedError, as does whatever reads batches. */
  findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined>;
  /** Batches in ascending position. */
  readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]>;
  /**
   * Writes batches anew where the index does not have them as given: all of a block, in ascending position. Answers those that were damaged.
   * @throws IndexDamagedError of a block before it that has to be mended first.
   */
  mendBatches(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]>;
  /** Events of a topic after a position. */
  countEventsAfter(groupId: GroupId, topic: TopicName, after: Position): Promise<number>;
  /** The same for many places, by one look at the index: a count for each, in their order. */
  countEventsAfterEach(groupId: GroupId, places: readonly TopicPlace[]): Promise<readonly number[]>;
  /** Events of all topics, by topic, without reading them. */
  countStretch(groupId: GroupId, stretch: Stretch): Promise<StretchCounts>;

  findSubscription(id: SubscriptionId): Promise<Subscription | undefined>;
  /** Those that there are, in any order. */
  findSubscriptions(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]>;
  /** In the order of their identifiers: all of them, or a page. */
  listSubscriptions(page?: SubscriptionPage): Promise<readonly Subscription[]>;
  countSubscriptions(): Promise<number>;
  /** Those whose url leads to a receiver (see findReceiver). */
  countSubscriptionsTo(receiver: string): Promise<number>;
  /**
   * Inserts, unless the identifier is taken, or the group's index went back since it was at `generation` (of an index without a head, 0). Where
   * the cursor is before every event, going back could have taken nothing, and the generation does not matter.
   */
  insertSubscription(subscription: Subscription, generation: number): Promise<InsertOutcome>;
  /** Sets url, kind, secret and state, and that nothing has failed; answers false when there is none of that epoch. */
  updateSubscription(
    key: SubscriptionKey,
    change: Pick<Subscription, "url" | "interfaceType" | "secret" | "state">,
  ): Promise<boolean>;
  /** Answers false when there is none of that epoch. */
  setSubscriptionState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean>;
  /** Answers false when there is none of that epoch. */
  deleteSubscription(key: SubscriptionKey): Promise<boolean>;
  /**
   * Moves cursors forward, and how long the event after the cursor has failed; a row that is already further in either is left as it is. Answers those of which there is none of that epoch. Each
   * subscription is given once.
   */
  saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]>;
}
