import { type EventBatch, isDropped } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { beforeBlock, endOfBlock } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import type { AddressedBatch, BlockState, ChainCheck, DamagedBlock } from "../../ports/chain-check.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import type { ChainDamage } from "./chain-damage.ts";

/** Maximum number of batches of a block that a repair reads. A repair that needs later ones fails. */
const batchesMax = 10_000;
/** Bytes of events after which a repair reads no further batch of the block. */
const bytesMax = 64 * 1024 * 1024;

export interface BlockRepairOptions {
  readonly groupId: GroupId;
  readonly chainCheck: ChainCheck;
  readonly chainDamage: ChainDamage;
  readonly store: Pick<Store, "readBatches" | "findTopics">;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Repairs damaged blocks in the chain's file from the index. Health reports the blocks that it cannot repair. */
export class BlockRepair {
  readonly #options: BlockRepairOptions;

  constructor(options: BlockRepairOptions) {
    this.#options = options;
  }

  /**
   * Checks a block against its hashes and repairs it if it is damaged. The parent hash in the next block proves the block's header, so the next block is
   * checked and repaired too. Returns the worse state of the two. Does not read a block again that is known to be damaged.
   */
  async inspect(blockNumber: number): Promise<BlockState> {
    const states = [await this.#inspectOne(blockNumber), await this.#inspectOne(blockNumber + 1)];
    return states.find((state) => state === "damaged") ?? states.find((state) => state === "repaired") ?? "intact";
  }

  async #inspectOne(blockNumber: number): Promise<BlockState> {
    const { chainCheck, chainDamage } = this.#options;
    if (chainDamage.has(blockNumber)) return "damaged";
    const checked = await chainCheck.check(blockNumber);
    const damaged = checked?.damaged.find(({ number }) => number === blockNumber);
    if (damaged === undefined) return "intact";
    return (await this.repair(damaged)) ? "repaired" : "damaged";
  }

  /** Repairs a block from the index. Returns whether the block matches its hashes afterwards. */
  async repair({ number, reason }: DamagedBlock): Promise<boolean> {
    const { chainDamage, metrics, logger, groupId } = this.#options;
    const batches = await this.#batchesOf(number);
    if (await this.#tryRepair(number, batches)) {
      chainDamage.clear(number);
      metrics.chainDamaged(groupId, "mended");
      logger.warn("chain damaged, repaired from the index", { blockNumber: number, reason });
      return true;
    }
    if (chainDamage.has(number)) return false;
    const isLost = batches.some(isDropped);
    chainDamage.note(number, { reason, isLost });
    metrics.chainDamaged(groupId, "unmended");
    const remedy = isLost ? chainDamage.failure : chainDamage.warning;
    logger.error("chain damaged, and not repaired", { blockNumber: number, reason, remedy });
    return false;
  }

  async #tryRepair(number: number, batches: readonly EventBatch[]): Promise<boolean> {
    try {
      return await this.#options.chainCheck.repair(number, await this.#address(batches));
    } catch (error) {
      this.#options.logger.debug("block not repaired", { blockNumber: number, error });
      return false;
    }
  }

  /** The indexed batches of a block; none if the store cannot read them, for example because the index is damaged too. */
  async #batchesOf(number: number): Promise<readonly EventBatch[]> {
    const { store, groupId, logger } = this.#options;
    const range = { after: beforeBlock(number), upTo: endOfBlock(number), topic: undefined, batchesMax, bytesMax };
    try {
      return await store.readBatches(groupId, range);
    } catch (error) {
      logger.debug("batches of a damaged block not read", { blockNumber: number, error });
      return [];
    }
  }

  /** The batches whose events the index has, with the addresses of their topics. */
  async #address(batches: readonly EventBatch[]): Promise<readonly AddressedBatch[]> {
    const { store, groupId } = this.#options;
    const topics = await store.findTopics(groupId, [...new Set(batches.map(({ topic }) => topic))]);
    const addresses = new Map(topics.map(({ name, address }) => [name, address]));
    return batches.flatMap((batch) => {
      const address = addresses.get(batch.topic);
      return address === undefined || isDropped(batch) ? [] : [{ ...batch, address }];
    });
  }
}
