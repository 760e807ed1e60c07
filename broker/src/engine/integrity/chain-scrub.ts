import type { GroupId } from "../../domain/group-id.ts";
import { endOfBlock } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import type { AddressedBatch, ChainCheck, DamagedBlock } from "../../ports/chain-check.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import type { ChainDamage } from "./chain-damage.ts";
import type { Scrubbable } from "./scrubber.ts";

/** Batches of one block that it is mended from; one with more is not mended. */
const batchesMax = 10_000;
/** Bytes of events of such a block. */
const bytesMax = 64 * 1024 * 1024;

export interface ChainScrubParts {
  readonly groupId: GroupId;
  readonly chainCheck: ChainCheck;
  readonly chainDamage: ChainDamage;
  readonly store: Pick<Store, "readBatches" | "findTopics">;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Holds every block of a chain's file against its hashes, and mends from the index what that has. */
export class ChainScrub implements Scrubbable {
  readonly part = "chain";
  readonly #parts: ChainScrubParts;
  #from = 0;
  #damaged = 0;
  #mended = 0;

  constructor(parts: ChainScrubParts) {
    this.#parts = parts;
  }

  get progress() {
    const advice = this.#parts.chainDamage.warning;
    return { checked: this.#from, damaged: this.#damaged, mended: this.#mended, advice };
  }

  async step(): Promise<boolean> {
    const { chainCheck, chainDamage, groupId, metrics } = this.#parts;
    const from = this.#from;
    const checked = await chainCheck.check(from);
    if (checked === undefined) return false;
    const found = new Map(checked.damaged.map((one) => [one.number, one]));
    for (let number = from; number <= checked.upTo; number += 1) {
      const block = found.get(number);
      if (block === undefined) chainDamage.clear(number);
      else await this.#onDamaged(block);
    }
    metrics.chainScrubbed(groupId, { block: checked.upTo, blocks: checked.upTo - from + 1 });
    this.#from = checked.upTo + 1;
    return true;
  }

  async #onDamaged({ number, reason }: DamagedBlock): Promise<void> {
    const { chainDamage, metrics, logger, groupId } = this.#parts;
    this.#damaged += 1;
    const isKnown = chainDamage.has(number);
    if (await this.#mend(number)) {
      this.#mended += 1;
      chainDamage.clear(number);
      metrics.chainDamaged(groupId, "mended");
      logger.warn("chain damaged, mended from the index", { blockNumber: number, reason });
    } else if (!isKnown) {
      chainDamage.note(number, reason);
      metrics.chainDamaged(groupId, "unmended");
      logger.error("chain damaged, and not mended", { blockNumber: number, reason, remedy: chainDamage.warning });
    }
  }

  async #mend(number: number): Promise<boolean> {
    try {
      return await this.#parts.chainCheck.mend(number, await this.#batchesOf(number));
    } catch (error) {
      this.#parts.logger.debug("block not mended", { blockNumber: number, error });
      return false;
    }
  }

  async #batchesOf(number: number): Promise<readonly AddressedBatch[]> {
    const { store, groupId } = this.#parts;
    const range = { after: endOfBlock(number - 1), upTo: endOfBlock(number), topic: undefined, batchesMax, bytesMax };
    const batches = await store.readBatches(groupId, range);
    const topics = await store.findTopics(groupId, [...new Set(batches.map(({ topic }) => topic))]);
    const addresses = new Map(topics.map(({ name, address }) => [name, address]));
    return batches.flatMap((batch) => {
      const address = addresses.get(batch.topic);
      return address === undefined ? [] : [{ ...batch, address }];
    });
  }
}
