import type { EventBatch } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchStart, BlockRef, LedgerBlock } from "../../ports/ledger.ts";
import type { Clock } from "../../ports/clock.ts";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import type { Tracing } from "../../ports/tracing.ts";
import { UnfitBlockError } from "../../ports/unfit-block-error.ts";
import type { FeedHub } from "../dispatch/feed-hub.ts";
import { BlockIndexer, type BlockIndexerOptions } from "./block-indexer.ts";
import { findAncestor } from "./find-ancestor.ts";
import type { IndexHealth } from "./index-health.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { Restarter } from "./restarter.ts";
import { traceCommits } from "./trace-commits.ts";

export interface FollowerOptions extends BlockIndexerOptions {
  readonly clock: Clock;
  /** Undefined if spans are not recorded. */
  readonly tracing?: Tracing | undefined;
  readonly progress: IndexProgress;
  readonly health: IndexHealth;
  /** Receives the committed batches, in order, before the progress advances. */
  readonly hub: FeedHub;
  readonly restarter: Restarter;
}

/** Reads final blocks of one group, commits the blocks of each step to the store in one transaction, and advances the progress. */
export class Follower {
  readonly #parts: FollowerOptions;
  readonly #indexer: BlockIndexer;
  #head: BlockRef | undefined;
  /** Number of reorgs since the last indexed block. */
  #reorganisations = 0;

  constructor(parts: FollowerOptions) {
    this.#parts = parts;
    this.#indexer = new BlockIndexer(parts);
  }

  /** The newest indexed block; undefined before {@link begin}, and for an empty index. */
  get head(): BlockRef | undefined {
    return this.#head;
  }

  /**
   * Begins at `head`, the newest indexed block; undefined for an empty index. Rolls back blocks that final blocks replaced while no node followed. If the
   * chain is only shorter than the index, keeps the index: {@link follow} then waits for the chain.
   * @throws Error if the chain has no block that the index can roll back to, or if the chain `isFinal` and differs at all; errors of ledger and store.
   */
  async begin(head: BlockRef | undefined, signal: AbortSignal): Promise<void> {
    this.#head = head;
    if (head === undefined) return;
    const { ledger } = this.#parts;
    const hash = await ledger.findBlockHash(head.number, signal);
    if (hash === head.hash) return;
    const found = hash === undefined ? "the chain is shorter and ends before it" : `the chain has ${hash} there`;
    if (ledger.isFinal) throw this.#anotherChain(head, found);
    const ancestor = await this.#findAncestor(head, { signal, found });
    if (await this.#isReplacedAfter(ancestor, signal)) await this.#rollBack(head, ancestor);
  }

  /**
   * Follows until `signal` aborts; calls `onStep` after each step. Call it again after a failure. @throws LeaseLostError, errors of ledger and store, and Error
   * after a reorg: if no common block is left, or if it is the second one without an indexed block between them.
   */
  async follow(signal: AbortSignal, onStep: () => void): Promise<void> {
    for await (const step of this.#parts.ledger.follow(this.#head, signal)) {
      if (step.kind === "reorganised") await this.#onReorganised(step.common, signal);
      else await this.#indexFitting(step.blocks, signal);
      onStep();
    }
  }

  async #indexFitting(blocks: readonly LedgerBlock[], signal: AbortSignal): Promise<void> {
    try {
      await this.#index(blocks);
    } catch (error) {
      if (error instanceof UnfitBlockError && !this.#parts.ledger.isFinal) await this.#readAgain(error.topic, signal);
      throw error;
    }
  }

  /**
   * Makes the next {@link follow} read blocks from the chain again, because a chain node left out logs. If an indexed block lacks events of the topic,
   * rolls the index back to the block before it; otherwise the gap is after the head.
   */
  async #readAgain(name: TopicName, signal: AbortSignal): Promise<void> {
    const { ledger, store, restarter, lease, logger, health } = this.#parts;
    const { groupId } = ledger;
    ledger.forgetBlocks();
    const head = this.#head?.number ?? -1;
    const topic = await store.findTopic(groupId, name);
    if (topic === undefined) return;
    // Search only for the topic's next sequence: a rollback repeats deliveries, so the index must gain at least that batch by it.
    const batch = { address: topic.address, firstSequence: topic.sequence + 1 };
    const range = { from: Math.max(topic.blockNumber, head - reorganisationBlocksMax), to: head };
    const blockNumber = await ledger.findBatch(batch, range, signal);
    if (blockNumber === undefined) return;
    const [to] = await store.listBlocks(groupId, { atMost: 1, below: blockNumber });
    if (to === undefined || !(await this.#isFollowed(batch, { after: to, blockNumber }, signal))) return;
    logger.warn("index lacked events of a block, rolling back to read it again", { blockNumber, topic: name });
    this.#indexer.forgetNames();
    await restarter.rollBack(to, lease);
    this.#head = to;
    health.warn(`the index lacked events of block ${blockNumber}, and the broker read blocks again from there`);
  }

  /** Whether `follow` returns the batch as well: chain nodes behind one address may disagree, and a needless rollback would deliver events again. */
  async #isFollowed(
    { address, firstSequence }: BatchStart,
    { after, blockNumber }: { readonly after: BlockRef; readonly blockNumber: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    for await (const step of this.#parts.ledger.follow(after, signal)) {
      if (step.kind === "reorganised") return false;
      const batches = step.blocks.flatMap(({ entries }) => entries.filter((entry) => "count" in entry));
      if (batches.some((batch) => batch.address === address && batch.firstSequence === firstSequence)) return true;
      if ((step.blocks.at(-1)?.number ?? blockNumber) >= blockNumber) return false;
    }
    return false;
  }

  /**
   * Whether the chain has another final block in place of the first indexed one after `ancestor`. If not, the chain is only shorter than the index, or a
   * lagging chain node shows an old branch: {@link follow} finds out once the chain's final block reaches the index.
   */
  async #isReplacedAfter(ancestor: BlockRef, signal: AbortSignal): Promise<boolean> {
    const { ledger, store } = this.#parts;
    const blocks = await store.listBlocks(ledger.groupId, { atMost: reorganisationBlocksMax + 2 });
    const next = blocks.findLast(({ number }) => number > ancestor.number);
    if (next === undefined || next.number > (await ledger.finalBlockNumber(signal))) return false;
    const hash = await ledger.findBlockHash(next.number, signal);
    return hash !== undefined && hash !== next.hash;
  }

  async #findAncestor(
    head: BlockRef,
    options: { readonly common?: BlockRef | undefined; readonly signal: AbortSignal; readonly found: string },
  ): Promise<BlockRef> {
    const ancestor = await findAncestor(this.#parts.ledger, this.#parts.store, options);
    if (ancestor === undefined) throw this.#anotherChain(head, options.found);
    return ancestor;
  }

  /** For a remote chain the error may be temporary: its node is being restored, or is far behind. */
  #anotherChain(head: BlockRef, found: string): Error {
    const { groupId, isFinal } = this.#parts.ledger;
    const seen = `the index's newest block is ${head.number} with hash ${head.hash}, but ${found}`;
    return new Error(
      isFinal
        ? `The chain in chain.sqlite is not the one that the index of group ${groupId} was made from, or has lost blocks and is perhaps damaged: ${seen}. ` +
            "Repair or restore the data folder, as docs/backup.md#repair says."
        : `The chain has none of the blocks that the index of group ${groupId} can roll back to: ${seen}. The broker tries again. ` +
            "If this error stays, the index was made from another chain: restore the chain that belongs to it, or give this chain a data folder of its own.",
    );
  }

  async #onReorganised(common: BlockRef | undefined, signal: AbortSignal): Promise<void> {
    this.#reorganisations += 1;
    const head = this.#head;
    if (head === undefined) return;
    const found = "a reorg has replaced it";
    await this.#rollBack(head, await this.#findAncestor(head, { common, signal, found }));
    if (this.#reorganisations > 1)
      throw new Error("the chain was reorganised again before a block of the new branch was indexed");
  }

  async #rollBack(head: BlockRef, to: BlockRef): Promise<void> {
    const { ledger, progress, restarter, lease, health, logger, metrics } = this.#parts;
    if (to.hash === head.hash) {
      progress.rollBackTo(head.number);
      return;
    }
    this.#indexer.forgetNames();
    const done = await restarter.rollBack(to, lease);
    this.#head = to;
    const [blocks, events] = [head.number - to.number, done.eventCount];
    logger.warn("chain reorganised", { blocks, to: to.number, events, topics: done.topicCount });
    health.warn(
      `the chain took back the final blocks after block ${to.number}: ${blocks} blocks with ${events} events`,
    );
    metrics.reorganised(ledger.groupId, { events });
  }

  /** Whether this node knows the index's generation. It does not if another node has emptied the index, which then has no generation before its first block. */
  async #isKnownGeneration(): Promise<boolean> {
    const { store, ledger, progress } = this.#parts;
    return (await store.findHead(ledger.groupId))?.generation === progress.generation;
  }

  async #write(blocks: readonly LedgerBlock[]): Promise<readonly EventBatch[]> {
    const { ledger, tracing, clock, extensionPrefix } = this.#parts;
    const startedAt = clock.now();
    const batches = await this.#indexer.write(blocks, this.#head);
    if (tracing !== undefined) traceCommits(batches, { tracing, extensionPrefix, groupId: ledger.groupId, startedAt });
    return batches;
  }

  async #index(blocks: readonly LedgerBlock[]): Promise<void> {
    const { ledger, progress, metrics, hub, restarter, lease } = this.#parts;
    const last = blocks.at(-1);
    if (last === undefined) return;
    const isFirst = this.#head === undefined;
    const batches = await this.#write(blocks);
    this.#head = { number: last.number, hash: last.hash };
    this.#reorganisations = 0;
    if (isFirst && lease !== undefined && !(await this.#isKnownGeneration())) await restarter.restart();
    else hub.offer(ledger.groupId, batches);
    progress.advanceTo(last.number);
    if (lease !== undefined) for (const { number, hash } of blocks) progress.saw({ number, hash });
    metrics.blocksIndexed(ledger.groupId, blocks.length);
  }
}
