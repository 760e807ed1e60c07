import type { DeadLetter } from "../domain/dead-letter.ts";
import type { Event, EventBatch } from "../domain/event.ts";
import type { GroupId } from "../domain/group-id.ts";
import type { NameRange } from "../domain/name-range.ts";
import type { NodeId } from "../domain/node.ts";
import type { PendingEvents } from "../domain/pending-events.ts";
import type { Position } from "../domain/position.ts";
import type { OverQuota, StoredQuota } from "../domain/quota.ts";
import type { CallbackSubscription, Subscription, SubscriptionId, SubscriptionState } from "../domain/subscription.ts";
import type { Address, Hash, Topic } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { VanishedBatch } from "../domain/vanished-events.ts";
import type { GroupLease, SubscriptionKey } from "./coordinator.ts";
import type { DeadLetters } from "./dead-letters.ts";
import type { BatchFault, BlockRef } from "./ledger.ts";
import type { PublishKeys } from "./publish-keys.ts";
import type { SessionStore } from "./session-store.ts";
import type { ShareStore } from "./share-store.ts";
import type { SubscriptionMove, SubscriptionSearch } from "./subscription-search.ts";

/** Why the index skipped an entry of the chain. */
export type SkipReason =
  | BatchFault
  | "topic-name-refused"
  | "topic-name-taken"
  | "topic-not-indexed"
  | "block-full"
  | "sequence-too-high";

/** An entry of the chain that the index skipped. The sender of its transaction chose the content. */
export interface SkippedEntry {
  readonly code: SkipReason;
  /** Explains the code, with details. */
  readonly reason: string;
  /** The topic contract. */
  readonly address: Address;
  /** The account that wrote the entry. Undefined for a closing or reopening, because its log names no account, and for entries that earlier versions stored. */
  readonly sender?: Address | undefined;
  readonly blockNumber: number;
  readonly transactionHash: Hash;
  readonly logIndex: number;
}

/** The retained event of a topic. */
export interface RetainedPlace {
  readonly sequence: number;
  readonly position: Position;
}

/** How a block changes the retained event of a topic; `retained` is undefined if the block removes it. */
export interface RetainedChange {
  readonly name: TopicName;
  readonly retained?: RetainedPlace | undefined;
}

/** A topic with its retained event. */
export interface RetainedEvent extends RetainedPlace {
  readonly topic: TopicName;
}

/** A page of retained events in the order of the names of their topics. */
export interface RetainedPage {
  /** The page lists only topics whose name begins with this text. */
  readonly prefix: string;
  /** The page begins after this name; undefined for the first page. */
  readonly after: TopicName | undefined;
  readonly limit: number;
}

/** Changes that one final block makes to the index. The engine derives them from a ledger's block; all are well-formed. */
export interface IndexedBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly opened: readonly Topic[];
  /** Topics closed (true) or reopened (false), in order. */
  readonly closed: readonly { readonly name: TopicName; readonly closed: boolean }[];
  readonly batches: readonly EventBatch[];
  /** Sequences of malformed batches, and of batches without room in the block. The topic's sequence moves past them, and the index has no events for them. */
  readonly skippedSequences: readonly {
    readonly name: TopicName;
    readonly firstSequence: number;
    readonly count: number;
  }[];
  /** Skipped entries, in the order of the chain; undefined if there are none. */
  readonly skippedEntries?: readonly SkippedEntry[];
  /** Retained events as the block leaves them, each topic once; undefined if the block changes none. */
  readonly retained?: readonly RetainedChange[];
}

/** Progress of a group's index. */
export interface IndexHead {
  readonly blockNumber: number;
  readonly hash: Hash;
  /** Number of rollbacks of the index. Data read under another generation may be gone. */
  readonly generation: number;
}

/** Result of a rollback of a group's index. */
export interface RollBack {
  /** Number of removed events. */
  readonly eventCount: number;
  /** Topics whose opening is no longer on the chain. */
  readonly topicCount: number;
}

/** An event by the parts of its identifier. */
export interface EventPlace {
  /** See topicDigest in wire. */
  readonly digest: string;
  readonly sequence: number;
  readonly blockNumber: number;
}

/**
 * Number of blocks below the head for which the index keeps undo data. One rollback keeps about 50 bytes in memory for each batch that it removes, whatever the
 * batch's size, and up to 100 bytes more while it counts the events of one filter. That is at most 15 MiB for 100,000 batches. The broker also searches this
 * many blocks for events that the index lacks because a chain node left out logs.
 */
export const reorganisationBlocksMax = 4096;

/** Maximum number of removed batches to remember after a reorg; the oldest make room. */
export const vanishedBatchesMax = 10_000;

/** Maximum number of skipped entries to remember per group; the oldest make room. */
export const skippedEntriesMax = 10_000;

/** Which topics to list. */
export interface TopicQuery {
  readonly offset: number;
  readonly limit: number;
  /** Ranges of names that do not overlap. If given, the query lists and counts only topics whose name is in one of them. */
  readonly ranges?: readonly NameRange[] | undefined;
}

/** A page of topics in the order in which they were opened. */
export interface TopicPage {
  readonly total: number;
  readonly topics: readonly Topic[];
}

/** Which batches to read: those of one topic or of all that have an event after `after` and up to `upTo`. Both are positions. */
export interface BatchRange {
  readonly after: Position;
  readonly upTo: Position;
  readonly topic: TopicName | undefined;
  /** Maximum number of batches, 1 or more. */
  readonly batchesMax: number;
  /** The read stops after the batch that brings the encoded bytes to this limit, so it returns at least one batch if there is any. */
  readonly bytesMax: number;
}

/** A position that a reader of a topic has reached. */
export interface TopicPosition {
  readonly topic: TopicName;
  readonly after: Position;
}

/** A range of the index: events after `after` and up to `upTo`, both positions. */
export interface PositionRange {
  readonly after: Position;
  readonly upTo: Position;
  /** Maximum number of batches to count, 1 or more. */
  readonly batchesMax: number;
}

/** Events of a range by topic. */
export interface RangeCounts {
  /** Each topic once, in any order. */
  readonly counts: readonly (PendingEvents & { readonly topic: TopicName })[];
  /** End of the counted part: the end of the range, or of the last counted batch. */
  readonly upTo: Position;
}

/** The newest batches of a topic with no event after `upTo`. */
export interface TopicRange {
  readonly topic: TopicName;
  readonly upTo: Position;
  /** Maximum number of batches to measure. */
  readonly batchesMax: number;
}

/** Result of measuring the batches of a {@link TopicRange}. */
export interface TopicSize {
  readonly batchCount: number;
  /** Bytes of the encoded events, including events whose copy was dropped. */
  readonly byteCount: number;
  /** Position of the oldest measured event; undefined if there is none. */
  readonly first: Position | undefined;
}

/** A page of subscriptions in the order of their identifiers. */
export interface SubscriptionPage {
  /** The page begins after this identifier; undefined for the first page. */
  readonly after: SubscriptionId | undefined;
  readonly limit: number;
}

/** The progress of one subscription, to be written together with others. */
export interface Progress extends SubscriptionKey {
  readonly cursor: Position;
  readonly notifiedCount: number;
  readonly notifiedAt: number;
  readonly failedAttempts: number;
  readonly failedMs: number;
  readonly failingSince: number;
  readonly retryAt: number;
  /** Events up to the cursor that were skipped. Those that the stored cursor has not passed yet become dead letters in the same transaction. */
  readonly skipped?: readonly DeadLetter[] | undefined;
}

export interface ApplyOptions {
  readonly isFinal: boolean;
  readonly lease?: GroupLease | undefined;
  /** The block that must be the store's head, or the store refuses the blocks: it may have lost confirmed writes. */
  readonly after?: BlockRef | undefined;
}

/** Result of inserting a subscription. `taken`: there is a subscription with this identifier. */
export type InsertOutcome = "inserted" | "taken" | "rolled-back" | OverQuota;

/** A follower wrote without holding the group's lease. */
export class LeaseLostError extends Error {
  constructor(groupId: GroupId) {
    super(`another node follows group ${groupId} now`);
    this.name = "LeaseLostError";
  }
}

/** Rows of the index are damaged or missing; the call returned nothing from them. */
export class IndexDamagedError extends Error {
  /** Blocks that may be the source of the damaged rows; empty if unknown. */
  readonly blocks: readonly number[];

  constructor(what: string, blocks: readonly number[]) {
    super(`the index is damaged: ${what}`);
    this.name = "IndexDamagedError";
    this.blocks = blocks;
  }
}

/** What a repeated subscribe changes in a callback subscription; the principal stays if left out. */
export type CallbackChange = Pick<CallbackSubscription, "delivery" | "state" | "principal">;

/** Number of subscriptions of a group in a state other than active. */
export interface HeldCount {
  readonly groupId: GroupId;
  readonly state: SubscriptionState;
  readonly count: number;
}

/** What a node owns. If `owner` is undefined: what no node owns, which is everything if the broker is a single node. */
export interface OwnedCount {
  readonly owner: NodeId | undefined;
  /** Number of subscriptions, in any state. */
  readonly subscriptions: number;
  /** Number of stored sessions with a connection. */
  readonly sessions: number;
}

/** Maximum number of blocks that an {@link IndexDamagedError} names. */
export const damagedBlocksMax = 64;

/**
 * What the broker stores beside the chain. It can rebuild the index from the chain, but not subscriptions, sessions, dead letters and publish keys.
 *
 * Guarantees: each call is one transaction. A change of a subscription's existence, address or state is durable when the call returns. The index and the
 * progress may lose their latest writes in a power cut (but not when the process is killed): the chain has the index, and repeated deliveries are allowed.
 */
export interface Store extends PublishKeys {
  /** Sessions of clients that hold connections. */
  readonly sessions: SessionStore;
  /** Shares of these sessions. */
  readonly shares: ShareStore;
  /** Events that subscriptions skipped. */
  readonly deadLetters: DeadLetters;

  /** Opens the store, and migrates it forward. */
  start(): Promise<void>;
  stop(): Promise<void>;

  findHead(groupId: GroupId): Promise<IndexHead | undefined>;
  /**
   * Applies blocks in order and moves the head to the last, atomically. The blocks must follow the head. Unless they are `isFinal` (default: they
   * are not), the store keeps undo data. If nodes share the store, `lease` must be the newest.
   * @throws LeaseLostError
   */
  applyBlocks(groupId: GroupId, blocks: readonly IndexedBlock[], options?: ApplyOptions): Promise<void>;
  /**
   * Blocks to which the group's index can roll back, newest first: the head, the applied blocks among the {@link reorganisationBlocksMax} numbers below it, and
   * the newest applied block below those numbers. Lists only numbers lower than `below`.
   */
  listBlocks(
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]>;
  /**
   * Rolls back to one of {@link listBlocks}, or to the empty index. Undoes the changes of later blocks, moves later cursors back to the end of the
   * block, subtracts acknowledgements beyond it from the counts, and ends failures of events beyond it. {@link findVanished} remembers the removed batches. With a `lease`,
   * each subscription that the lease's node does not own gets a new epoch, so that a late write of its owner cannot restore the cursor.
   * @throws LeaseLostError
   */
  rollBack(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): Promise<RollBack>;
  /** The batch of an event that a reorg removed; undefined if there was none, or it is forgotten. */
  findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined>;

  /**
   * Skipped entries of the indexed blocks, newest first: at most `atMost` of the newest {@link skippedEntriesMax}. Omits entries that a reorg removed.
   */
  listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]>;

  findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined>;
  /** The topics of these names that exist, in any order. Reads the index once for any number of names. */
  findTopics(groupId: GroupId, names: readonly TopicName[]): Promise<readonly Topic[]>;
  /** The topics with these contract addresses that exist, in any order. */
  findTopicsByAddress(groupId: GroupId, addresses: readonly Address[]): Promise<readonly Topic[]>;
  listTopics(groupId: GroupId, query: TopicQuery): Promise<TopicPage>;
  /** Number of topics whose names begin with a prefix, which ends in a slash, and are not in `except`. */
  countTopics(groupId: GroupId, prefix: string, except: readonly string[]): Promise<number>;
  /** Every topic whose name has this digest (see topicDigest in wire); usually one. */
  findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]>;

  /** The batch of an event, by topic and sequence. @throws IndexDamagedError, as does every read of batches. */
  findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined>;
  /** Batches in ascending position. */
  readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]>;
  /**
   * Rewrites each batch of a block that the index stores differently. Returns the batches that were damaged.
   * @throws IndexDamagedError for an earlier block that must be repaired first, Error if the index does not have the block: a reorg may have removed it.
   */
  repairBatches(groupId: GroupId, block: IndexedBlock): Promise<readonly EventBatch[]>;
  /**
   * Drops the store's copy of the events of each batch that is still stored as given. Reads then return the batch with `dropped` and empty `events`. Everything
   * else stays, including the bytes that the batch counts for `bytesMax`. Returns the batches whose copy this call dropped.
   */
  dropEvents(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]>;
  /** Topics that have a retained event. A rollback restores earlier retained events. */
  listRetained(groupId: GroupId, page: RetainedPage): Promise<readonly RetainedEvent[]>;
  /** Number of a topic's events after a position. */
  countEventsAfter(groupId: GroupId, topic: TopicName, after: Position): Promise<number>;
  /** For each place, in order, the number of events after it and the first of them. Reads the index once for all places. */
  countEventsAfterEach(groupId: GroupId, places: readonly TopicPosition[]): Promise<readonly PendingEvents[]>;
  /** Counts events of all topics, by topic, without reading them. */
  countRange(groupId: GroupId, range: PositionRange): Promise<RangeCounts>;
  /** Measures batches of one topic without reading their events. */
  measureTopic(groupId: GroupId, range: TopicRange): Promise<TopicSize>;

  findSubscription(id: SubscriptionId): Promise<Subscription | undefined>;
  /** The subscriptions that exist, in any order. */
  findSubscriptions(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]>;
  /** All subscriptions, or a page of them, in the order of their identifiers. */
  listSubscriptions(page?: SubscriptionPage): Promise<readonly Subscription[]>;
  /** The subscriptions that match, in the order of their identifiers. Compares the stored rows: a worker may know newer progress than its row has. */
  searchSubscriptions(search: SubscriptionSearch, page: SubscriptionPage): Promise<readonly Subscription[]>;
  countSubscriptions(): Promise<number>;
  /** Number of subscriptions that are not active, by group and state. Reads one index entry for each. */
  countHeld(): Promise<readonly HeldCount[]>;
  /** Number of subscriptions and stored sessions by owner, in any order. Reads one index entry for each. */
  countOwned(): Promise<readonly OwnedCount[]>;
  /** Number of subscriptions whose url leads to a receiver (see findReceiver). */
  countSubscriptionsTo(receiver: string): Promise<number>;
  /**
   * Inserts, unless the identifier is taken or the group's index has rolled back since `generation` (0 for an index without a head). If the cursor
   * is before every event, a rollback cannot affect it, and the generation does not matter. Checks the quotas exactly, over all nodes.
   */
  insertSubscription(
    subscription: Subscription,
    generation: number,
    quotas?: readonly StoredQuota[],
  ): Promise<InsertOutcome>;
  /**
   * Sets delivery and state of a callback subscription under the next epoch, and clears its failures; returns false if there is no subscription with that
   * epoch. Only a host that the owner's other subscriptions do not have counts against the quotas.
   */
  updateSubscription(
    key: SubscriptionKey,
    change: CallbackChange,
    quotas?: readonly StoredQuota[],
  ): Promise<boolean | OverQuota>;
  /**
   * Changes a callback subscription under the next epoch, so that the store refuses a late write of its progress. Clears its failures, unless the move
   * contains some. The cursor may move in both directions. `refused`: there is no subscription with that epoch. `rolled-back`: the move has a cursor, and
   * the index has rolled back since `generation`.
   */
  moveSubscription(
    key: SubscriptionKey & Pick<Subscription, "groupId">,
    move: SubscriptionMove,
    generation: number,
  ): Promise<"moved" | "refused" | "rolled-back">;
  /** Returns false if there is no subscription with that epoch. */
  setSubscriptionState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean>;
  /** Returns false if there is no subscription with that epoch. */
  deleteSubscription(key: SubscriptionKey): Promise<boolean>;
  /**
   * Moves cursors forward, never back. Stores the failures of the event after each cursor. Writes the dead letters of skipped events that a cursor passes.
   * Returns the subscriptions that do not exist with the given epoch. Give each subscription once.
   */
  saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]>;
}
