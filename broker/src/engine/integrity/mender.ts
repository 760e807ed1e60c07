import { BrokerError } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BlockRef, Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import { IndexDamagedError, type Store } from "../../ports/store.ts";
import { indexBlocks } from "../index-block.ts";
import { Deadline } from "../time.ts";

/** Blocks that may be mended before the one that is damaged can be, each for the sake of the next. */
const chainOfBlocksMax = 64;
/** Times that one read is made again, each after a block was mended. */
const mendsPerReadMax = 256;
/** Damages that are remembered as told; further ones are not told. */
const toldMax = 10_000;
/** How long the chain may take to give a block. */
const readTimeoutMs = 30_000;

export interface MenderParts {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Writes what is damaged in the index anew from the chain. */
export class Mender {
  readonly #parts: MenderParts;
  readonly #turns = new KeyedMutex<GroupId>();
  readonly #told = new Set<string>();
  readonly #mended = new Map<GroupId, number>();

  constructor(parts: MenderParts) {
    this.#parts = parts;
  }

  /** Reads, and where the index is damaged, mends it and reads again. @throws BrokerError 200208 when the chain does not give what is damaged. */
  async read<Result>(groupId: GroupId, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof IndexDamagedError)) throw error;
      return this.#turns.run(groupId, () => this.#readMending(groupId, read));
    }
  }

  /** Batches of a group that were mended since the start. */
  mendedIn(groupId: GroupId): number {
    return this.#mended.get(groupId) ?? 0;
  }

  async #readMending<Result>(groupId: GroupId, read: () => Promise<Result>): Promise<Result> {
    let mended: number | undefined;
    for (let reads = 1; ; reads += 1) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof IndexDamagedError)) throw error;
        // Where nothing was damaged any more, another node may have mended it; then it was worth another look.
        if (mended === 0 || reads > mendsPerReadMax) throw this.#refusal(groupId, error);
        mended = await this.#mend(groupId, error);
      }
    }
  }

  async #mend(groupId: GroupId, damage: IndexDamagedError): Promise<number> {
    try {
      let count = 0;
      for (const block of damage.blocks) count += await this.#mendBlock(groupId, block);
      if (count > 0) this.#told.delete(keyOf(groupId, damage));
      return count;
    } catch (error) {
      throw this.#refusal(groupId, damage, error);
    }
  }

  /** What is met again and again is told once. */
  #refusal(groupId: GroupId, damage: IndexDamagedError, cause?: unknown): BrokerError {
    const why = cause instanceof Error ? cause.message : "the chain holds nothing that fits";
    const key = keyOf(groupId, damage);
    if (!this.#told.has(key) && this.#told.size < toldMax) {
      this.#told.add(key);
      this.#parts.metrics.indexDamaged(groupId, "unmended");
      this.#parts.logger.error("index damaged, and not mended", { groupId, reason: damage.message, why });
    }
    return new BrokerError("indexDamaged", {
      details: `${damage.message}; not mended from the chain: ${why}`,
      cause: damage,
    });
  }

  /** Answers how many batches were damaged. What a batch is counted from may be damaged too, and is mended first. */
  async #mendBlock(groupId: GroupId, blockNumber: number): Promise<number> {
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
    const { store } = this.#parts;
    const batches = await this.#readBatches(groupId, blockNumber);
    try {
      const mended = await store.mendBatches(groupId, batches);
      for (const batch of mended) this.#tell(groupId, batch);
      return mended.length;
    } catch (error) {
      if (error instanceof IndexDamagedError && error.blocks.some((block) => block < blockNumber)) return error;
      throw error;
    }
  }

  /** What the chain has in a block, as it is indexed. */
  async #readBatches(groupId: GroupId, blockNumber: number): Promise<readonly EventBatch[]> {
    const { ledgers, store, clock } = this.#parts;
    const ledger = ledgers.find((one) => one.groupId === groupId);
    using deadline = new Deadline(clock, readTimeoutMs);
    const block = await ledger?.readBlock(blockNumber, deadline.signal);
    if (block === undefined) throw new Error(`the chain does not have block ${blockNumber}`);
    const [kept] = await store.listBlocks(groupId, { atMost: 1, below: blockNumber + 1 });
    if (!isSame(block, kept)) throw new Error(`the chain has another block ${blockNumber} than the index`);
    const names = await this.#findNames(groupId, block);
    return indexBlocks([block], names, namesOpenedIn(block)).flatMap(({ batches }) => batches);
  }

  /** Names of the indexed topics that the block speaks of, also of those that it opens. */
  async #findNames(groupId: GroupId, { entries }: LedgerBlock): Promise<Map<Address, TopicName>> {
    const addresses = [...new Set(entries.map(({ address }) => address))];
    const topics = await this.#parts.store.findTopicsByAddress(groupId, addresses);
    return new Map(topics.map(({ address, name }) => [address, name]));
  }

  #tell(groupId: GroupId, { topic, firstSequence, count, blockNumber }: EventBatch): void {
    const { metrics, logger } = this.#parts;
    this.#mended.set(groupId, this.mendedIn(groupId) + 1);
    metrics.indexDamaged(groupId, "mended");
    const place = { topic, firstSequence, lastSequence: firstSequence + count - 1, blockNumber };
    logger.warn("index damaged, mended from the chain", { groupId, ...place });
  }
}

function keyOf(groupId: GroupId, { message }: IndexDamagedError): string {
  return `${groupId} ${message}`;
}

/** Which of them got their names is in the index: none gets one again. */
function namesOpenedIn({ entries }: LedgerBlock): ReadonlySet<TopicName> {
  const names = entries.flatMap((entry) => (entry.kind === "topic-opened" ? [entry.name] : []));
  return new Set(names as readonly string[] as readonly TopicName[]); // Only compared.
}

/** The index remembers the hashes of its newest blocks alone. */
function isSame(block: LedgerBlock, kept: BlockRef | undefined): boolean {
  return kept?.number !== block.number || kept.hash === block.hash;
}
