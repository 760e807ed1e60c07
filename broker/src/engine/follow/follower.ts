import { backoffDelayMs } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { EventBatch } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { IndexHead, Store } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../time.ts";
import { findTopicName, indexBlocks, type SkippedEntry } from "./index-block.ts";
import type { IndexProgress } from "./index-progress.ts";

export interface FollowerParts {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly progress: IndexProgress;
  /** Called after the batches are committed to the store, in their order, before the progress is advanced. */
  readonly onIndexed: (batches: readonly EventBatch[]) => void;
}

/** Reads final blocks of one group, commits each round to the store in one transaction, and tells who waits. */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #failure: string | undefined = "not started";
  #failures = 0;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Why the index does not follow; undefined while it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /**
   * Assumes that ledger and store are started. Answers when the index has what was final at this moment, or when `signal` aborts. It may
   * be called again after it has failed.
   * @throws Error when the index was made from another chain.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#running === undefined) await this.#begin(signal);
    const { ledger, progress } = this.#parts;
    await progress.waitFor(await ledger.finalBlockNumber(signal), signal);
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { ledger, store, progress } = this.#parts;
    const head = await store.findHead(ledger.groupId);
    if (head !== undefined) {
      await this.#checkHead(head, signal);
      progress.advanceTo(head.blockNumber);
    }
    const target = await ledger.finalBlockNumber(signal);
    this.#failure = undefined;
    this.#running = this.#run();
    if (target > progress.blockNumber)
      this.#parts.logger.info("index catching up", { from: progress.blockNumber, to: target });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** An index that is ahead of the chain, or beside it, would hide events: better not to start. */
  async #checkHead(head: IndexHead, signal: AbortSignal): Promise<void> {
    const { groupId } = this.#parts.ledger;
    const hash = await this.#parts.ledger.findBlockHash(head.blockNumber, signal);
    if (hash === head.hash) return;
    const found = hash === undefined ? "the chain is not that high" : `the chain has ${hash} there`;
    throw new Error(
      `The index of group ${groupId} was made from another chain: its newest block is ${head.blockNumber} with hash ${head.hash}, but ${found}. ` +
        "Restore the chain that belongs to it, or delete the store to build it anew from this chain (which loses the subscriptions).",
    );
  }

  async #run(): Promise<void> {
    const { clock, limits, randomness, logger } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#follow();
      } catch (error) {
        this.#failures += 1;
        this.#failure = error instanceof Error ? error.message : "unknown failure";
        logger.error("following failed", { error, failures: this.#failures });
        const delayMs = backoffDelayMs(this.#failures, {
          delayMsMin: limits.followDelayMsMin,
          delayMsMax: limits.followDelayMsMax,
          fraction: randomness.fraction(),
        });
        await pause(clock, delayMs, this.#stopping.signal);
      }
    }
  }

  async #follow(): Promise<void> {
    const { ledger, store } = this.#parts;
    const head = await store.findHead(ledger.groupId);
    const after = head && { number: head.blockNumber, hash: head.hash };
    for await (const step of ledger.follow(after, this.#stopping.signal)) {
      if (step.kind === "reorganised") throw new Error("the chain took back a final block");
      await this.#index(step.blocks);
      this.#failures = 0;
      this.#failure = undefined;
    }
  }

  async #index(blocks: readonly LedgerBlock[]): Promise<void> {
    const { ledger, store, progress, metrics, onIndexed } = this.#parts;
    const last = blocks.at(-1);
    if (last === undefined) return;
    const results = indexBlocks(blocks, await this.#findNames(blocks));
    await store.applyBlocks(
      ledger.groupId,
      results.map((result) => result.block),
      { isFinal: ledger.isFinal },
    );
    this.#report(results.flatMap((result) => result.left));
    onIndexed(results.flatMap((result) => result.block.batches));
    progress.advanceTo(last.number);
    metrics.blocksIndexed(ledger.groupId, { blocks: blocks.length, head: last.number });
  }

  /** Names of the indexed topics that the blocks speak of, by contract or by a name that is opened. */
  async #findNames(blocks: readonly LedgerBlock[]): Promise<ReadonlyMap<Address, TopicName>> {
    const { ledger, store } = this.#parts;
    const names = new Map<Address, TopicName>();
    const note = (topic: Topic | undefined): void => {
      if (topic !== undefined) names.set(topic.address, topic.name);
    };
    for (const address of addressesIn(blocks)) note(await store.findTopicByAddress(ledger.groupId, address));
    for (const name of namesOpenedIn(blocks)) note(await store.findTopic(ledger.groupId, name));
    return names;
  }

  #report(left: readonly SkippedEntry[]): void {
    for (const entry of left) {
      this.#parts.metrics.batchMalformed(this.#parts.ledger.groupId);
      this.#parts.logger.warn("chain entry skipped", { ...entry });
    }
  }
}

function namesOpenedIn(blocks: readonly LedgerBlock[]): readonly TopicName[] {
  const entries = blocks.flatMap((block) => block.entries);
  return entries.flatMap((entry) => (entry.kind === "topic-opened" ? (findTopicName(entry.name) ?? []) : []));
}

function addressesIn(blocks: readonly LedgerBlock[]): ReadonlySet<Address> {
  return new Set(blocks.flatMap((block) => block.entries.map((entry) => entry.address)));
}
