import type { BlockRange } from "../domain/block-range.ts";
import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { ChainCheck } from "./chain-check.ts";
import type { ChainProof, ProofPlace } from "./chain-proof.ts";
import type { LedgerInfo } from "./ledger-info.ts";
import type { TopicWriters } from "./topic-writers.ts";

/** Limits for one transaction, and for transactions in flight. Each is at least 1, and may change between calls. */
export interface LedgerLimits {
  readonly eventsPerTransactionMax: number;
  /** Bytes of encoded events in one transaction. */
  readonly bytesPerTransactionMax: number;
  /** Bytes of `bytesPerTransactionMax` that each topic after the first takes in addition to its events. */
  readonly bytesPerTopic: number;
  readonly transactionsInFlightMax: number;
}

/** How to open a topic that, as far as the node knows, was never opened. */
export interface TopicOpening {
  readonly address: Address;
  /** The set of accounts that may write to the topic; undefined for everyone. */
  readonly writers: number | undefined;
}

/** Events of one topic for one transaction; at least one event. */
export interface OutgoingBatch {
  readonly topic: TopicName;
  readonly address: Address;
  /** If given, the same transaction first opens the topic, unless it is open. */
  readonly opening?: TopicOpening | undefined;
  readonly count: number;
  /** The encoded list of `count` events. */
  readonly events: Uint8Array;
}

/** Result of each outgoing batch, in the order of the call. */
export type BatchOutcome =
  | {
      readonly status: "committed";
      readonly firstSequence: number;
      readonly blockNumber: number;
      /**
       * Hash of that block. The number is not enough: after a reorg the chain may have another block of this number, in which another batch has the sequence.
       */
      readonly blockHash: Hash;
      readonly transactionHash: Hash;
    }
  | {
      readonly status: "rejected";
      readonly reason: "unknown-topic" | "closed-topic" | "empty-batch" | "count-too-large";
    }
  /** Only other accounts may publish to the topic. */
  | { readonly status: "rejected"; readonly reason: "not-a-writer" }
  /** Other accounts moved the topic's sequence beyond 2^53 - 1: the batch is on the chain, but cannot be indexed. */
  | { readonly status: "rejected"; readonly reason: "sequence-spent" }
  /** The chain refuses transactions of that size. Then all batches of the call have this result, none was committed, and `limits` may have shrunk. */
  | { readonly status: "too-large" };

interface EntryPlace {
  readonly address: Address;
  readonly transactionHash: Hash;
  /** Index of the log in its block; entries of a block ascend by it. */
  readonly logIndex: number;
}

/** The cause of error 200202 if {@link AppendOptions.mayStart} forbade the transaction: it is not on the chain, and a later try may succeed. */
export class MayNotStartError extends Error {
  constructor() {
    super("this node may not send the transaction");
    this.name = "MayNotStartError";
  }
}

export interface AppendOptions {
  /**
   * Called right before the transaction is sent; from then on, the transaction survives this process. If it returns false, the ledger sends nothing and
   * throws 200202 with {@link MayNotStartError} as its cause.
   */
  readonly mayStart?: (() => boolean) | undefined;
  /**
   * If true, the chain commits all batches or none: if it would reject one, `append` throws 200202. Has no effect on an append that opens topics, because the
   * registry then decides about each batch separately.
   */
  readonly isAtomic?: boolean | undefined;
  /** Called when the chain has accepted the transaction, or refused it for a reason other than its size. May be called repeatedly, or never. */
  readonly onAccepted?: (() => void) | undefined;
}

/** Why a batch is malformed. */
export type BatchFault =
  | "undecodable-batch"
  | "wrong-count"
  | "wrong-root"
  /** Count and root match, but the batch breaks a rule for publishers (see domain/event-rules.ts). */
  | "beyond-limits";

/** One change on the chain, in a block. */
export type LedgerEntry =
  | (EntryPlace & { readonly kind: "topic-opened"; readonly name: string; readonly sender: Address })
  | (EntryPlace & { readonly kind: "topic-closed" | "topic-reopened" })
  | (EntryPlace & {
      readonly kind: "events-committed";
      /** The publishing account. */
      readonly publisher: Address;
      readonly firstSequence: number;
      readonly count: number;
      /** The encoded list; already checked against `count` and the root. */
      readonly events: Uint8Array;
    })
  /** A batch with a {@link BatchFault}. It takes `count` sequences; readers skip it. */
  | (EntryPlace & {
      readonly kind: "events-malformed";
      /** The publishing account. */
      readonly publisher: Address;
      readonly firstSequence: number;
      readonly count: number;
      readonly fault: BatchFault;
      readonly reason: string;
    });

/** The place of a batch on the chain. */
export interface BatchPlace {
  readonly blockNumber: number;
  readonly logIndex: number;
}

/** What identifies a batch of a topic, wherever it is on the chain. */
export interface BatchStart {
  /** The topic's address. */
  readonly address: Address;
  readonly firstSequence: number;
}

/** A batch as the chain has it, checked against its count and root. */
export type CommittedBatch = Extract<LedgerEntry, { kind: "events-committed" }> & BatchPlace;

/** A block, identified by number and hash. */
export interface BlockRef {
  readonly number: number;
  readonly hash: Hash;
}

/** A final block with the entries of the group's registry. `follow` may omit blocks without entries, except the newest of each step. */
export interface LedgerBlock extends BlockRef {
  readonly parentHash: Hash;
  /** Milliseconds since the epoch; chains keep whole seconds. */
  readonly timestamp: number;
  readonly entries: readonly LedgerEntry[];
}

/**
 * One step of `follow`. `reorganised` is the last step: a block from an earlier step, or one announced as final, is no longer on the chain. `common` is
 * the newest block still on the chain among those that `follow` returned and the one it began after. If the ledger knows none of them, `common` is
 * undefined, and the follower compares its own blocks with the chain.
 */
export type LedgerStep =
  | { readonly kind: "blocks"; readonly blocks: readonly LedgerBlock[] }
  | { readonly kind: "reorganised"; readonly common: BlockRef | undefined };

/** Why a chain is unavailable, and since when (milliseconds of the monotonic clock). It contains no secret. */
export interface Outage {
  readonly reason: string;
  readonly since: number;
}

/** State of a chain, as known without a call to the chain. */
export interface LedgerView {
  /** Why the chain is unavailable; undefined while it answers, as far as the node knows. */
  readonly outage: Outage | undefined;
  /** The newest known block, final or not; undefined before the start. */
  readonly headBlock: number | undefined;
  /** Warnings for the operator while the chain answers. */
  readonly warning?: string | undefined;
  /** Why the chain does not commit this node's transactions although it answers. Undefined while it commits them, as far as known. */
  readonly transactionFailure?: string | undefined;
  /** Facts for the operator after the start: chain id, addresses. */
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface LedgerStartOptions {
  /**
   * Whether this node may deploy the group's registry if there is none: without this check, several nodes could each deploy one. Called right before
   * a deployment. If absent, the node may deploy.
   */
  readonly mayDeploy?: (() => boolean) | undefined;
}

/**
 * One group's chain. Guarantees: results of `openTopic`, `closeTopic` and `append` are final and durable. `follow` returns every final block with
 * entries exactly once, in ascending order, and never goes beyond a block that it could not read. The group's finality setting defines what is final.
 * Unless the chain `isFinal`, a reorg may still remove final blocks, and `follow` reports that.
 *
 * Errors, all BrokerError: 200202 the transaction was reverted, or was not sent; 200201 its outcome is not known in time; 200205 the chain is
 * unreachable. The methods name their further errors.
 */
export interface Ledger {
  readonly groupId: GroupId;
  readonly limits: LedgerLimits;
  /** Whether this chain never has reorgs. */
  readonly isFinal: boolean;
  /** The address that signs this ledger's transactions; no two nodes may share one. Undefined if the chain is this node's own. */
  readonly sender?: Address | undefined;
  /** Finds damage in the chain's file; undefined if the file is not this process's own. */
  readonly chainCheck?: ChainCheck | undefined;
  /** How long a caller waits for its transaction and its block, in milliseconds; defaults to the engine's limit. */
  readonly publishTimeoutMs?: number | undefined;
  /** Connects, and deploys the registry if there is none. Call it before anything else; call it again after a failure. */
  start(options?: LedgerStartOptions): Promise<void>;
  /** Waits for calls in progress, at most until `signal` aborts, then disconnects from the chain. Ends `follow`. */
  stop(signal?: AbortSignal): Promise<void>;
  /** Opens or reopens; idempotent. Returns the block since which the topic is open. @throws 100113 if this account may not open it. */
  openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }>;
  /** Prepares an `append` that opens the topic with its first batch. @throws 100113 if this account may not open topics for the group. */
  prepareOpening(name: TopicName): Promise<TopicOpening>;
  /** Who may publish to a topic; undefined if it was never opened. @throws 200205. */
  findWriters(name: TopicName, signal: AbortSignal): Promise<TopicWriters | undefined>;
  /** Closes; idempotent. @throws 100101 if the topic never existed; 100113 if this account may not close it. */
  closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }>;
  /**
   * Commits the batches in order, in one transaction that first opens the topics of batches with an `opening`. Commits successive calls in their
   * order, even if the caller does not wait for the earlier ones. The caller must observe `limits`. If aborted before the call, throws 200202. If
   * aborted later, throws 200201 if the batches may still be committed, else 200202 or 200205: any error but 200201 says that nothing was committed and
   * nothing will be.
   */
  append(
    batches: readonly OutgoingBatch[],
    signal: AbortSignal,
    options?: AppendOptions,
  ): Promise<readonly BatchOutcome[]>;
  /**
   * Returns every final block after `after` (undefined: from the beginning), and then new blocks as they become final, until `signal` aborts. Each step
   * continues the branch of `after` and of the previous step. A chain that lags returns nothing until it has caught up.
   */
  follow(after: BlockRef | undefined, signal: AbortSignal): AsyncIterable<LedgerStep>;
  /** Makes the next `follow` read its blocks from the chain again: a node of the chain may have left out logs when the ledger read them. */
  forgetBlocks(): void;
  /** A final block as `follow` returns it; undefined if the chain is not that high. For callers that can do without the block. @throws 200205. */
  readBlock(blockNumber: number, signal: AbortSignal): Promise<LedgerBlock | undefined>;
  /** The block from `range.from` to `range.to` that has the batch; undefined if the chain returns none, or if `signal` aborts. @throws 200205. */
  findBatch(batch: BatchStart, range: BlockRange, signal: AbortSignal): Promise<number | undefined>;
  /**
   * The batches at these places, which must ascend and be in final blocks. Leaves out places for which the chain returns no batch, or a malformed one. Returns
   * a batch beyond the limits: settings may have allowed it when it was indexed. Neighbouring places share a request. If `signal` aborts or a later request
   * fails, returns the batches that it has. @throws 200205 if the first request fails.
   */
  readCommitted(places: readonly BatchPlace[], signal: AbortSignal): Promise<readonly CommittedBatch[]>;
  /**
   * Waits until the chain can include no further transaction that `sender` (this ledger's account if undefined) sent before the call. Returns the number of a
   * block at or after every block with such a transaction. Undefined if `signal` aborts first, or if the outcome stays unknown. After a reorg, a removed
   * transaction may be included again. @throws 200205.
   */
  settled(sender: Address | undefined, signal: AbortSignal): Promise<number | undefined>;
  /** The current state of the chain, as far as known. */
  view(): LedgerView;
  /** Asks the chain for the state of the ledger's account. Never rejects. */
  readInfo(): Promise<LedgerInfo>;
  /** The newest final block. @throws 200205. */
  finalBlockNumber(signal: AbortSignal): Promise<number>;
  /** The hash of a block, final or not; undefined if the chain is not that high. @throws 200205. */
  findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined>;
  /** Data that ties an event of a final block to the hash of that block. @throws 200205; 200206 if the chain gives no proof. */
  findProof(place: ProofPlace, signal: AbortSignal): Promise<ChainProof>;
}
