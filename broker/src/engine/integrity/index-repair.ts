import { BrokerError, isBrokerError } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import { type IndexedBlock, IndexDamagedError, type Store } from "../../ports/store.ts";
import { indexBlocks } from "../index-block.ts";
import { indexRemedy } from "./index-damage.ts";
import { Deadline } from "../time.ts";

/** Maximum number of tries to repair one damaged block, including the repairs of earlier blocks on which it depends. */
const chainOfBlocksMax = 64;
/** Maximum number of repeats of one read, each after a repair. */
const repairsPerReadMax = 256;
/** Maximum number of damaged places that are remembered as reported; further ones are neither logged nor counted. */
const reportedMax = 10_000;
/** How long the chain may take to return a block, in milliseconds. */
const readTimeoutMs = 30_000;

/** What damage means for clients until it is repaired. */
const effect =
  "subscriptions and sessions whose filters match the topic, with wildcards too, wait before these events and get no later ones";

export interface IndexRepairOptions {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Repairs damaged batches of the index from the chain. */
export class IndexRepair {
  readonly #options: IndexRepairOptions;
  readonly #locks = new KeyedMutex<GroupId>();
  readonly #reported = new Set<string>();
  readonly #repaired = new Map<GroupId, number>();

  constructor(options: IndexRepairOptions) {
    this.#options = options;
  }

  /** Calls `read`. If the index is damaged, repairs it and calls `read` again. @throws BrokerError 200208 if the index cannot be repaired. */
  async read<Result>(groupId: GroupId, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof IndexDamagedError)) throw error;
      return this.#locks.run(groupId, () => this.#readRepairing(groupId, read));
    }
  }

  /** Number of batches of a group that this node has repaired since its start. */
  repairedIn(groupId: GroupId): number {
    return this.#repaired.get(groupId) ?? 0;
  }

  async #readRepairing<Result>(groupId: GroupId, read: () => Promise<Result>): Promise<Result> {
    let repaired: number | undefined;
    for (let reads = 1; ; reads += 1) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof IndexDamagedError)) throw error;
        // If the repair found nothing damaged, another node may have repaired it: read once more, then give up.
        if (repaired === 0 || reads > repairsPerReadMax) throw this.#refusal(groupId, error);
        repaired = await this.#repair(groupId, error);
      }
    }
  }

  async #repair(groupId: GroupId, damage: IndexDamagedError): Promise<number> {
    try {
      let count = 0;
      for (const block of damage.blocks) count += await this.#repairBlock(groupId, block);
      if (count > 0) this.#reported.delete(keyOf(groupId, damage));
      return count;
    } catch (error) {
      throw this.#refusal(groupId, damage, error);
    }
  }

  /** Logs and counts each damaged place once until it is repaired. */
  #refusal(groupId: GroupId, damage: IndexDamagedError, cause?: unknown): BrokerError {
    const why = cause instanceof Error ? cause.message : "the chain holds nothing that fits";
    const key = keyOf(groupId, damage);
    if (!this.#reported.has(key) && this.#reported.size < reportedMax) {
      this.#reported.add(key);
      this.#options.metrics.indexDamaged(groupId, "unmended");
      const remedy = isBrokerError(cause, "chainUnreachable") ? "the broker tries again; see why" : indexRemedy;
      const fields = { groupId, reason: damage.message, why, effect, remedy };
      this.#options.logger.error("index damaged, and not repaired", fields);
    }
    return new BrokerError("indexDamaged", {
      details: `${damage.message}; not repaired from the chain: ${why}`,
      cause: damage,
    });
  }

  /** Repairs a block, and returns the number of repaired batches. First repairs earlier damaged blocks, on which the counts of this one build. */
  async #repairBlock(groupId: GroupId, blockNumber: number): Promise<number> {
    const due = [blockNumber];
    let count = 0;
    for (let blocks = 0; blocks < chainOfBlocksMax; blocks += 1) {
      const number = due.at(-1);
      if (number === undefined) break;
      const outcome = await this.#tryBlock(groupId, number);
      if (typeof outcome === "number") {
        count += outcome;
        due.pop();
      } else due.push(...outcome.blocks.filter((other) => other < number));
    }
    return count;
  }

  async #tryBlock(groupId: GroupId, blockNumber: number): Promise<number | IndexDamagedError> {
    const { store } = this.#options;
    const block = await this.#readBlock(groupId, blockNumber);
    try {
      const repaired = await store.repairBatches(groupId, block);
      for (const batch of repaired) this.#report(groupId, batch);
      return repaired.length;
    } catch (error) {
      if (error instanceof IndexDamagedError && error.blocks.some((block) => block < blockNumber)) return error;
      throw error;
    }
  }

  /** Reads a block from the chain, with its batches as the index must have them. */
  async #readBlock(groupId: GroupId, blockNumber: number): Promise<IndexedBlock> {
    const { ledgers, clock } = this.#options;
    const ledger = ledgers.find((one) => one.groupId === groupId);
    using deadline = new Deadline(clock, readTimeoutMs);
    const block = await ledger?.readBlock(blockNumber, deadline.signal);
    if (block === undefined) throw new Error(`the chain does not have block ${blockNumber}`);
    const names = await this.#findNames(groupId, block);
    const { number, hash } = block;
    const batches = indexBlocks([block], names, namesOpenedIn(block)).flatMap((indexed) => indexed.batches);
    return { number, hash, batches, opened: [], closed: [], skippedSequences: [] };
  }

  /** Names of the indexed topics in the block, including those that it opens. */
  async #findNames(groupId: GroupId, { entries }: LedgerBlock): Promise<Map<Address, TopicName>> {
    const addresses = [...new Set(entries.map(({ address }) => address))];
    const topics = await this.#options.store.findTopicsByAddress(groupId, addresses);
    return new Map(topics.map(({ address, name }) => [address, name]));
  }

  #report(groupId: GroupId, { topic, firstSequence, count, blockNumber }: EventBatch): void {
    const { metrics, logger } = this.#options;
    this.#repaired.set(groupId, this.repairedIn(groupId) + 1);
    metrics.indexDamaged(groupId, "mended");
    const place = { topic, firstSequence, lastSequence: firstSequence + count - 1, blockNumber };
    logger.warn("index damaged, repaired from the chain", { groupId, ...place });
  }
}

function keyOf(groupId: GroupId, { message }: IndexDamagedError): string {
  return `${groupId} ${message}`;
}

/** Names of the topics that the block opens; the index already has them. */
function namesOpenedIn({ entries }: LedgerBlock): ReadonlySet<TopicName> {
  const names = entries.flatMap((entry) => (entry.kind === "topic-opened" ? [entry.name] : []));
  return new Set(names as readonly string[] as readonly TopicName[]); // The names are only compared.
}
