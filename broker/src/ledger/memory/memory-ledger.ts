import { BrokerError, encodeEvents, quote } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type {
  BatchOutcome,
  BlockRef,
  Ledger,
  LedgerLimits,
  LedgerStep,
  LedgerView,
  OutgoingBatch,
} from "../../ports/ledger.ts";
import type { MemoryChain } from "./memory-chain.ts";

/** Blocks in one round of follow. */
const blocksPerRoundMax = 256;
const defaultSender: Address = `0x${"5e".repeat(20)}`;
const defaultLimits: LedgerLimits = {
  eventsPerTransactionMax: 1000,
  bytesPerTransactionMax: 1_048_576,
  transactionsInFlightMax: 4,
};

export interface MemoryLedgerOptions {
  readonly groupId: GroupId;
  readonly chain: MemoryChain;
  readonly limits?: LedgerLimits;
  /** Whom topics say to have been opened by. */
  readonly sender?: Address;
}

/** A ledger on a {@link MemoryChain}. */
export function createMemoryLedger(options: MemoryLedgerOptions): Ledger {
  return new MemoryLedger(options);
}

class MemoryLedger implements Ledger {
  readonly groupId: GroupId;
  readonly limits: LedgerLimits;
  readonly isFinal = true;
  readonly #chain: MemoryChain;
  readonly #sender: Address;
  readonly #stopping = new AbortController();
  #started = false;

  constructor(options: MemoryLedgerOptions) {
    this.groupId = options.groupId;
    this.limits = options.limits ?? defaultLimits;
    this.#chain = options.chain;
    this.#sender = options.sender ?? defaultSender;
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

  async openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    this.#check(signal);
    return { blockNumber: this.#chain.open(name, this.#sender) };
  }

  async closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    this.#check(signal);
    const blockNumber = this.#chain.close(name);
    if (blockNumber === undefined) throw new BrokerError("topicNotExist", { details: quote(name) });
    return { blockNumber };
  }

  async append(batches: readonly OutgoingBatch[], signal: AbortSignal): Promise<readonly BatchOutcome[]> {
    this.#check(signal);
    return this.#chain.publish(
      batches.map(({ address, events }) => ({ address, count: events.length, events: encodeEvents(events) })),
    );
  }

  async *follow(after: BlockRef | undefined, signal: AbortSignal): AsyncGenerator<LedgerStep> {
    const ended = AbortSignal.any([signal, this.#stopping.signal]);
    let next = after === undefined ? 0 : after.number + 1;
    while (!ended.aborted) {
      if (next > this.#chain.head) {
        await this.#chain.sealed.wait(ended);
        continue;
      }
      const blocks = this.#chain.read(next, blocksPerRoundMax);
      next = (blocks.at(-1)?.number ?? next) + 1;
      yield { kind: "blocks", blocks };
    }
  }

  async finalBlockNumber(signal: AbortSignal): Promise<number> {
    this.#check(signal);
    return this.#chain.head;
  }

  async findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined> {
    this.#check(signal);
    return this.#chain.hashOf(blockNumber);
  }

  /** A chain without headers has nothing to prove with. */
  async findProof(): Promise<never> {
    throw new BrokerError("proofUnavailable", { details: "this group's chain is in memory" });
  }

  #check(signal: AbortSignal): void {
    if (!this.#started || this.#stopping.signal.aborted) {
      throw new BrokerError("chainUnreachable", { details: "the ledger is not started" });
    }
    if (signal.aborted) throw new BrokerError("transactionFailed", { details: "given up before it was sent" });
  }
}
