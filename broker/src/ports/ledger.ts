import type { GroupId } from "../domain/group-id.ts";
import type { Address, Hash } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { ChainCheck } from "./chain-check.ts";
import type { ChainProof, ProofPlace } from "./chain-proof.ts";

/** How much one transaction may carry, and how many may be under way. Each is at least 1. May change from one call to the next. */
export interface LedgerLimits {
  readonly eventsPerTransactionMax: number;
  /** Bytes of encoded events in one transaction. */
  readonly bytesPerTransactionMax: number;
  readonly transactionsInFlightMax: number;
}

/** Events of one topic for one transaction; at least one event. */
export interface OutgoingBatch {
  readonly topic: TopicName;
  readonly address: Address;
  readonly count: number;
  /** The encoded list of `count` events. */
  readonly events: Uint8Array;
}

/** What became of one outgoing batch, in the order of the call. */
export type BatchOutcome =
  | { readonly status: "committed"; readonly firstSequence: number; readonly blockNumber: number }
  | {
      readonly status: "rejected";
      readonly reason: "unknown-topic" | "closed-topic" | "empty-batch" | "count-too-large";
    }
  /** The topic is for other accounts. */
  | { readonly status: "rejected"; readonly reason: "not-a-writer" }
  /** Strangers have moved the topic's sequence beyond 2^53 - 1: it is on the chain, and no index takes it. */
  | { readonly status: "rejected"; readonly reason: "sequence-spent" }
  /** The chain takes no transaction that large: then it is so of all batches, none was committed, and `limits` may have shrunk. */
  | { readonly status: "too-large" };

interface EntryPlace {
  readonly address: Address;
  readonly transactionHash: Hash;
  /** Place of the log in its block; entries of a block ascend by it. */
  readonly logIndex: number;
}

/** What can be wrong with a batch. */
export type BatchFault =
  | "undecodable-batch"
  | "wrong-count"
  | "wrong-root"
  /** It is what it claims to be, and holds what no publisher may publish (see domain/event-rules.ts). */
  | "beyond-limits";

/** One thing that happened on the chain, in a block. */
export type LedgerEntry =
  | (EntryPlace & { readonly kind: "topic-opened"; readonly name: string; readonly sender: Address })
  | (EntryPlace & { readonly kind: "topic-closed" | "topic-reopened" })
  | (EntryPlace & {
      readonly kind: "events-committed";
      /** The account that published. */
      readonly publisher: Address;
      readonly firstSequence: number;
      readonly count: number;
      /** The encoded list; checked against `count` and the root on the chain. */
      readonly events: Uint8Array;
    })
  /** A batch that does not decode to its count under its root, or is beyond the limits. It takes `count` sequences and stops nobody. */
  | (EntryPlace & {
      readonly kind: "events-malformed";
      readonly firstSequence: number;
      readonly count: number;
      readonly fault: BatchFault;
      readonly reason: string;
    });

/** A block, and which of those that ever stood at its number. */
export interface BlockRef {
  readonly number: number;
  readonly hash: Hash;
}

/** A final block with what it holds for us. Blocks without entries may be left out, but for the newest one of a step. */
export interface LedgerBlock extends BlockRef {
  readonly parentHash: Hash;
  /** Milliseconds since the epoch, as the chain has it (whole seconds). */
  readonly timestamp: number;
  readonly entries: readonly LedgerEntry[];
}

/** What `follow` gives. After `reorganised` it ends: a block that was given is no longer on the chain, or was announced as final and is not. */
export type LedgerStep =
  | { readonly kind: "blocks"; readonly blocks: readonly LedgerBlock[] }
  | { readonly kind: "reorganised" };

/** Why a chain cannot be asked for now, and since when (milliseconds of the monotonic clock). It shows no secret. */
export interface Outage {
  readonly reason: string;
  readonly since: number;
}

/** What is known of a chain without asking it. */
export interface LedgerView {
  /** Undefined while the chain answers, as far as is known. */
  readonly outage: Outage | undefined;
  /** The newest block that was heard of, final or not; undefined before the start. */
  readonly headBlock: number | undefined;
  /** What an operator should know though the chain answers. */
  readonly warning?: string | undefined;
  /** What an operator may want to see of it once it has started: chain id, addresses. */
  readonly facts: Readonly<Record<string, string | number>>;
}

export interface LedgerStartOptions {
  /**
   * Whether this node is the one that may give the group its registry where it has none yet, since several nodes would give it several; asked
   * right before. Always when left out.
   */
  readonly mayDeploy?: (() => boolean) | undefined;
}

/**
 * One group's chain. Guarantees: what `openTopic`, `closeTopic` and `append` answer is final and durable; `follow` gives
 * every final block that holds entries exactly once, ascending, and never passes an unread one. Final is what the group's finality
 * setting says; a chain may take back final blocks all the same, unless it `isFinal`, and then `follow` says so.
 *
 * Errors, all BrokerError: 200202 the transaction was reverted; 200201 its fate is not known in time; 200205 the chain cannot
 * be reached; 100101 closing a topic that never was.
 */
export interface Ledger {
  readonly groupId: GroupId;
  readonly limits: LedgerLimits;
  /** Whether this chain never takes a block back. */
  readonly isFinal: boolean;
  /** The address that signs what this ledger sends; no two nodes may sign with one. Undefined where that cannot be: the chain is this node's own. */
  readonly sender?: Address | undefined;
  /** Undefined where the chain's file is not this process's own. */
  readonly chainCheck?: ChainCheck | undefined;
  /** How long a caller waits for its transaction and its block; as long as the engine's limit says when left out. */
  readonly publishTimeoutMs?: number | undefined;
  /** Connects, and deploys the registry where none is. To be called before anything else; again after it has failed. */
  start(options?: LedgerStartOptions): Promise<void>;
  /** Waits for what is under way, no longer than until `signal` aborts, then lets go of the chain. `follow` ends. */
  stop(signal?: AbortSignal): Promise<void>;
  /** Opens or reopens; idempotent. Answers the block from which on the topic is open. */
  openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }>;
  /** Closes; idempotent. @throws 100101 when the topic was never opened. */
  closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }>;
  /**
   * Commits the batches in one transaction, in their order. Calls made one after the other (without waiting) are committed in that
   * order. The caller keeps to `limits`. Aborted before it was sent, it is 200202 and changes nothing; after that, it is 200201 or 200205
   * and may still be committed.
   */
  append(batches: readonly OutgoingBatch[], signal: AbortSignal): Promise<readonly BatchOutcome[]>;
  /**
   * Every final block after `after` (undefined: from the beginning), and then the new ones as they become final, until aborted. Each step
   * continues the chain that `after`, and then the step before, is on; a chain that is merely behind gives nothing until it has caught up.
   */
  follow(after: BlockRef | undefined, signal: AbortSignal): AsyncIterable<LedgerStep>;
  /** A final block as `follow` gives it, for whoever can do without it; undefined when the chain is not that high. @throws 200205. */
  readBlock(blockNumber: number, signal: AbortSignal): Promise<LedgerBlock | undefined>;
  /** How the chain is seen at this moment. */
  view(): LedgerView;
  /** The newest final block. @throws 200205. */
  finalBlockNumber(signal: AbortSignal): Promise<number>;
  /** The hash of a final block; undefined when the chain is not that high. @throws 200205. */
  findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined>;
  /** What ties an event of a final block to that block's hash. @throws 200205; 200206 where the chain gives no proof. */
  findProof(place: ProofPlace, signal: AbortSignal): Promise<ChainProof>;
}
