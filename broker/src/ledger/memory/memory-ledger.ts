import { BrokerError, quote } from "@stele/wire";
import type { BlockRange } from "../../domain/block-range.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import {
  type AppendOptions,
  type BatchOutcome,
  type BatchPlace,
  type BatchStart,
  type BlockRef,
  type CommittedBatch,
  type Ledger,
  type LedgerBlock,
  type LedgerEntry,
  type LedgerLimits,
  type LedgerStep,
  type LedgerView,
  MayNotStartError,
  type OutgoingBatch,
  type TopicOpening,
} from "../../ports/ledger.ts";
import type { LedgerInfo } from "../../ports/ledger-info.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import { type MemoryChain, topicAddress } from "./memory-chain.ts";

/** Upper bound on the blocks of one step of `follow` on a chain in memory. */
const blocksPerRoundMax = 256;
const defaultSender: Address = `0x${"5e".repeat(20)}`;
const defaultLimits: LedgerLimits = {
  eventsPerTransactionMax: 1000,
  bytesPerTransactionMax: 1_048_576,
  bytesPerTopic: 0,
  transactionsInFlightMax: 4,
};

export interface MemoryLedgerOptions {
  readonly groupId: GroupId;
  readonly chain: MemoryChain;
  readonly limits?: LedgerLimits;
  /** The account that opens topics and publishes; no two nodes may share it. If omitted, the ledger uses a default account and has no `sender`. */
  readonly sender?: Address;
  /** Whether the chain never has reorgs; true if omitted. */
  readonly isFinal?: boolean;
  /** Blocks on top of a block that make it final; 0 if omitted. */
  readonly confirmations?: number;
}

/** Creates a ledger on a {@link MemoryChain}. */
export function createMemoryLedger(options: MemoryLedgerOptions): Ledger {
  return new MemoryLedger(options);
}

class MemoryLedger implements Ledger {
  readonly groupId: GroupId;
  readonly limits: LedgerLimits;
  readonly isFinal: boolean;
  readonly sender: Address | undefined;
  readonly #chain: MemoryChain;
  readonly #confirmations: number;
  readonly #stopping = new AbortController();
  #started = false;

  constructor(options: MemoryLedgerOptions) {
    this.groupId = options.groupId;
    this.limits = options.limits ?? defaultLimits;
    this.isFinal = options.isFinal ?? true;
    this.#confirmations = options.confirmations ?? 0;
    this.#chain = options.chain;
    this.sender = options.sender;
  }

  async start(): Promise<void> {
    this.#started = true;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
  }

  view(): LedgerView {
    return { outage: undefined, headBlock: this.#started ? this.#chain.head : undefined, facts: {} };
  }

  async readInfo(): Promise<LedgerInfo> {
    return { finality: this.#confirmations === 0 ? "latest" : this.#confirmations, account: undefined };
  }

  async openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    this.#check(signal);
    return { blockNumber: this.#chain.open(name, this.sender ?? defaultSender) };
  }

  async prepareOpening(name: TopicName): Promise<TopicOpening> {
    return { address: topicAddress(name), writers: undefined };
  }

  async findWriters(name: TopicName, signal: AbortSignal): Promise<TopicWriters | undefined> {
    this.#check(signal);
    return this.#chain.hasTopic(name) ? { kind: "everyone" } : undefined;
  }

  async closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    this.#check(signal);
    const blockNumber = this.#chain.close(name);
    if (blockNumber === undefined) throw new BrokerError("topicNotExist", { details: quote(name) });
    return { blockNumber };
  }

  async append(
    batches: readonly OutgoingBatch[],
    signal: AbortSignal,
    { mayStart, isAtomic, onAccepted }: AppendOptions = {},
  ): Promise<readonly BatchOutcome[]> {
    this.#check(signal);
    if (mayStart?.() === false) {
      const details = "this node may not send it";
      throw new BrokerError("transactionFailed", { details, cause: new MayNotStartError() });
    }
    onAccepted?.();
    const names = batches.flatMap(({ topic, opening }) => (opening === undefined ? [] : [topic]));
    const options = { publisher: this.sender ?? defaultSender, names };
    const outcomes =
      isAtomic === true ? this.#chain.publishAll(batches, options) : this.#chain.publish(batches, options);
    if (outcomes !== undefined) return outcomes;
    throw new BrokerError("transactionFailed", { details: `reverted in block ${this.#chain.head}` });
  }

  async *follow(after: BlockRef | undefined, signal: AbortSignal): AsyncGenerator<LedgerStep> {
    const ended = AbortSignal.any([signal, this.#stopping.signal]);
    const cutsBefore = this.#chain.cuts.length;
    let at = after;
    while (!ended.aborted) {
      if (this.#hasLost(at, cutsBefore)) {
        yield { kind: "reorganised", common: this.#commonWith(at, cutsBefore) };
        return;
      }
      const next = at === undefined ? 0 : at.number + 1;
      const blocks = this.#chain.read(next, Math.min(blocksPerRoundMax, this.#final - next + 1));
      at = blocks.at(-1) ?? at;
      if (blocks.length === 0) await this.#chain.sealed.wait(ended);
      else yield { kind: "blocks", blocks };
    }
  }

  /** `follow` always reads the chain itself. */
  forgetBlocks(): void {}

  get #final(): number {
    return this.#chain.head - this.#confirmations;
  }

  /** Whether another block replaced `at`, or a reorg after the first `cutsBefore` removed a final block. */
  #hasLost(at: BlockRef | undefined, cutsBefore: number): boolean {
    const hash = at && this.#chain.hashOf(at.number);
    if (hash !== undefined && hash !== at?.hash) return true;
    return this.#chain.cuts.slice(cutsBefore).some(({ to, from }) => to < from - this.#confirmations);
  }

  /** `at` if it is still on the chain, else the newest block that no reorg after the first `cutsBefore` removed; undefined if that block is unknown. */
  #commonWith(at: BlockRef | undefined, cutsBefore: number): BlockRef | undefined {
    if (at === undefined || this.#chain.hashOf(at.number) === at.hash) return at;
    const number = Math.min(at.number, ...this.#chain.cuts.slice(cutsBefore).map(({ to }) => to));
    const hash = number < at.number ? this.#chain.hashOf(number) : undefined;
    return hash === undefined ? undefined : { number, hash };
  }

  async finalBlockNumber(signal: AbortSignal): Promise<number> {
    this.#check(signal);
    return this.#final;
  }

  /** No transaction is ever open: each is in a block as soon as it is sent. */
  async settled(_sender: Address | undefined, signal: AbortSignal): Promise<number | undefined> {
    return signal.aborted ? undefined : this.#chain.head;
  }

  async findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined> {
    this.#check(signal);
    return this.#chain.hashOf(blockNumber);
  }

  async readBlock(blockNumber: number, signal: AbortSignal): Promise<LedgerBlock | undefined> {
    this.#check(signal);
    return blockNumber > this.#final ? undefined : this.#chain.find(blockNumber);
  }

  async findBatch(
    { address, firstSequence }: BatchStart,
    { from, to }: BlockRange,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    if (signal.aborted) return undefined;
    const blocks = this.#chain.read(from, Math.min(to, this.#final) - from + 1);
    const isWanted = (entry: LedgerEntry): boolean =>
      "count" in entry && entry.address === address && entry.firstSequence === firstSequence;
    return blocks.find(({ entries }) => entries.some(isWanted))?.number;
  }

  async readCommitted(places: readonly BatchPlace[], signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    this.#check(signal);
    return places.flatMap(({ blockNumber, logIndex }) => {
      const entries = blockNumber > this.#final ? [] : (this.#chain.find(blockNumber)?.entries ?? []);
      return entries.flatMap((entry) =>
        entry.kind === "events-committed" && entry.logIndex === logIndex ? [{ ...entry, blockNumber }] : [],
      );
    });
  }

  /** A chain in memory has no headers, so it cannot prove events. */
  async findProof(): Promise<never> {
    throw new BrokerError("proofUnavailable", { details: "this group's chain is in memory" });
  }

  #check(signal: AbortSignal): void {
    if (!this.#started || this.#stopping.signal.aborted) {
      throw new BrokerError("chainUnreachable", { details: "the ledger is not started" });
    }
    if (signal.aborted) throw new BrokerError("transactionFailed", { details: "aborted before it was sent" });
  }
}
