import type { GroupId } from "../../domain/group-id.ts";
import { lastPositionOf } from "../../domain/event.ts";
import { beforeBlock, blockOf, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { Metrics } from "../../ports/metrics.ts";
import { IndexDamagedError, type Store } from "../../ports/store.ts";
import type { IndexDamage } from "./index-damage.ts";
import type { IndexRepair } from "./index-repair.ts";
import type { Scrubbable } from "./scrubber.ts";

/** Maximum number of batches that one step reads. */
const batchesPerStepMax = 64;
/** Bytes of encoded events after which a step ends. */
const bytesPerStepMax = 1024 * 1024;

export interface IndexScrubOptions {
  readonly groupId: GroupId;
  /** A store that repairs damaged batches when it reads them. */
  readonly store: Pick<Store, "findHead" | "readBatches" | "findBatch">;
  readonly indexRepair: Pick<IndexRepair, "repairedIn">;
  readonly indexDamage: IndexDamage;
  readonly metrics: Metrics;
}

/** Reads every batch of a group's index in order, and finds each one also by its topic and sequence, as getEvent does. */
export class IndexScrub implements Scrubbable {
  readonly part = "index";
  readonly #options: IndexScrubOptions;
  readonly #damagedBlocks = new Set<number>();
  #after: Position = positionZero;
  /** The next damaged block to skip, after the blocks before it are read; undefined if none is known. */
  #passedOver: number | undefined;
  #batches = 0;
  readonly #repairedBefore: number;

  /** Begins a round of `indexDamage`. */
  constructor(options: IndexScrubOptions) {
    this.#options = options;
    options.indexDamage.beginRound();
    this.#repairedBefore = options.indexRepair.repairedIn(options.groupId);
  }

  get progress() {
    const repaired = this.#options.indexRepair.repairedIn(this.#options.groupId) - this.#repairedBefore;
    const advice = this.#options.indexDamage.warning;
    return { checked: this.#batches, damaged: repaired + this.#damagedBlocks.size, repaired, advice };
  }

  async step(): Promise<boolean> {
    const isMore = await this.#step();
    if (!isMore) this.#options.indexDamage.endRound();
    return isMore;
  }

  async #step(): Promise<boolean> {
    const { store, groupId } = this.#options;
    const head = await store.findHead(groupId);
    if (head === undefined) return false;
    try {
      const isMore = await this.#read(this.#passedOver === undefined ? head.blockNumber : this.#passedOver - 1);
      return isMore || this.#passOver(head.blockNumber);
    } catch (error) {
      const damage = damageIn(error);
      if (damage === undefined) throw error;
      this.#note(damage);
      return true;
    }
  }

  async #read(upToBlock: number): Promise<boolean> {
    const { store, groupId, metrics } = this.#options;
    const upTo = beforeBlock(upToBlock + 1);
    const limits = { batchesMax: batchesPerStepMax, bytesMax: bytesPerStepMax };
    const batches = await store.readBatches(groupId, { after: this.#after, upTo, topic: undefined, ...limits });
    for (const { topic, firstSequence } of batches) await store.findBatch(groupId, { topic, sequence: firstSequence });
    this.#batches += batches.length;
    const last = batches.at(-1);
    metrics.scrubbed(groupId, { block: last?.blockNumber ?? upToBlock, batches: batches.length });
    if (last !== undefined) this.#after = lastPositionOf(last);
    return last !== undefined;
  }

  /**
   * Plans to skip a damaged block. `blocks` may name blocks that this scrub has passed: a damaged row may have a wrong position. Each call skips at least
   * one more block.
   */
  #note({ message, blocks }: IndexDamagedError): void {
    this.#options.indexDamage.note(message);
    const own = blockOf(this.#after);
    const first = this.#after === endOfBlock(own) ? own + 1 : own;
    const ahead = blocks.filter((block) => block >= first);
    const block = ahead.length === 0 ? first : Math.min(...ahead);
    for (const damaged of blocks) this.#damagedBlocks.add(damaged);
    if (this.#passedOver !== undefined && block >= this.#passedOver) this.#after = endOfBlock(block);
    this.#passedOver = block;
  }

  #passOver(headBlock: number): boolean {
    if (this.#passedOver === undefined) return false;
    this.#after = endOfBlock(this.#passedOver);
    this.#passedOver = undefined;
    return blockOf(this.#after) < headBlock;
  }
}

function damageIn(error: unknown): IndexDamagedError | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof IndexDamagedError ? cause : undefined;
}
