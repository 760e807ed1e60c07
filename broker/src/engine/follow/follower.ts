import { backoffDelayMs } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { EventBatch } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BlockRef, Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { RollBack, SkippedEntry, Store } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../time.ts";
import { findAncestor } from "./find-ancestor.ts";
import { findTopicName, indexBlocks } from "./index-block.ts";
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
  /** Takes the index, and all that was fed from it, back to a block that it can go back to. */
  readonly goBack: (to: BlockRef) => Promise<RollBack>;
}

/** How long a reorganisation of final blocks is told of. */
const warningMs = 3_600_000;

/** Reads final blocks of one group, commits each round to the store in one transaction, and tells who waits. */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #failure: string | undefined = "not started";
  #failures = 0;
  /** The newest indexed block. */
  #head: BlockRef | undefined;
  /** Times that the chain was reorganised since a block of it was indexed. */
  #reorganisations = 0;
  #warning: { readonly at: number; readonly text: string } | undefined;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Why the index does not follow; undefined while it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** What an operator should know of the last hour; undefined when there is nothing. */
  get warning(): string | undefined {
    const { clock } = this.#parts;
    return this.#warning !== undefined && clock.now() - this.#warning.at < warningMs ? this.#warning.text : undefined;
  }

  /**
   * Assumes that ledger and store are started. Answers when the index has what was final at this moment, or when `signal` aborts. It may
   * be called again after it has failed.
   * @throws Error when the index was made from another chain.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#running === undefined) await this.#begin(signal);
    const { ledger, progress } = this.#parts;
    while (!signal.aborted && !(await progress.waitFor(await ledger.finalBlockNumber(signal), signal)));
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { ledger, store, progress } = this.#parts;
    const head = await store.findHead(ledger.groupId);
    if (head !== undefined) {
      this.#head = { number: head.blockNumber, hash: head.hash };
      await this.#checkHead(this.#head, signal);
      progress.advanceTo(this.#head.number);
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

  /**
   * What the chain has taken back while nobody followed is taken back here. An index that is ahead of its chain waits; one that is beside
   * every chain would hide events: better not to start.
   */
  async #checkHead(head: BlockRef, signal: AbortSignal): Promise<void> {
    const { ledger } = this.#parts;
    const hash = await ledger.findBlockHash(head.number, signal);
    if (hash === head.hash) return;
    const found = hash === undefined ? "the chain is not that high" : `the chain has ${hash} there`;
    if (ledger.isFinal) throw this.#anotherChain(head, found);
    const ancestor = await this.#findAncestor(head, { signal, found });
    if (hash !== undefined || !(await this.#isBehind(ancestor, signal))) await this.#goBack(head, ancestor);
  }

  /** Whether the chain has all blocks of the index up to its own height. */
  async #isBehind(ancestor: BlockRef, signal: AbortSignal): Promise<boolean> {
    const { ledger, store } = this.#parts;
    const height = await ledger.finalBlockNumber(signal);
    const [newest] = await store.listBlocks(ledger.groupId, { atMost: 1, below: height + 1 });
    return newest?.hash === ancestor.hash;
  }

  async #findAncestor(
    head: BlockRef,
    options: { readonly signal: AbortSignal; readonly found: string },
  ): Promise<BlockRef> {
    const ancestor = await findAncestor(this.#parts.ledger, this.#parts.store, options.signal);
    if (ancestor === undefined) throw this.#anotherChain(head, options.found);
    return ancestor;
  }

  /** A chain that others run may show this for a while: its node is being restored, or another one answers that is far behind. */
  #anotherChain(head: BlockRef, found: string): Error {
    const { groupId, isFinal } = this.#parts.ledger;
    const seen = `its newest block is ${head.number} with hash ${head.hash}, but ${found}`;
    const remedy =
      "restore the chain that belongs to it, or delete the store to build it anew from this chain (which loses the subscriptions)";
    return new Error(
      isFinal
        ? `The index of group ${groupId} was made from another chain: ${seen}; ${remedy}.`
        : `The chain has none of the blocks that the index of group ${groupId} can go back to: ${seen}. It is tried again. ` +
            `Only if it stays so was the index made from another chain: ${remedy}.`,
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
    const { ledger, progress } = this.#parts;
    const { signal } = this.#stopping;
    // Who waits for a block that this follower has not given may have heard of it on a branch that is no more.
    if (this.#failures > 0 && !ledger.isFinal) progress.rollBackTo(this.#head?.number ?? -1);
    for await (const step of ledger.follow(this.#head, signal)) {
      if (step.kind === "reorganised") await this.#onReorganised(signal);
      else await this.#index(step.blocks);
      this.#failures = 0;
      this.#failure = undefined;
    }
  }

  async #onReorganised(signal: AbortSignal): Promise<void> {
    this.#reorganisations += 1;
    const head = this.#head;
    if (head === undefined) return;
    const found = "none of the blocks that the index can go back to is on the chain";
    await this.#goBack(head, await this.#findAncestor(head, { signal, found }));
    if (this.#reorganisations > 1)
      throw new Error("the chain was reorganised again before a block of it could be read");
  }

  async #goBack(head: BlockRef, to: BlockRef): Promise<void> {
    const { ledger, progress, goBack } = this.#parts;
    if (to.hash === head.hash) {
      progress.rollBackTo(head.number);
      return;
    }
    const done = await goBack(to);
    this.#head = to;
    this.#tell({ blocks: head.number - to.number, to: to.number, events: done.eventCount, topics: done.topicCount });
    this.#parts.metrics.reorganised(ledger.groupId, { events: done.eventCount });
  }

  #tell(what: {
    readonly blocks: number;
    readonly to: number;
    readonly events: number;
    readonly topics: number;
  }): void {
    const { clock, logger } = this.#parts;
    logger.warn("chain reorganised", what);
    const text = `in the last hour the chain took back ${what.blocks} blocks that were final, down to block ${what.to}, with ${what.events} events`;
    this.#warning = { at: clock.now(), text };
  }

  async #index(blocks: readonly LedgerBlock[]): Promise<void> {
    const { ledger, store, progress, metrics, onIndexed } = this.#parts;
    const last = blocks.at(-1);
    if (last === undefined) return;
    const indexed = indexBlocks(blocks, await this.#findNames(blocks));
    await store.applyBlocks(ledger.groupId, indexed, { isFinal: ledger.isFinal });
    this.#report(indexed.flatMap(({ leftOut = [] }) => leftOut));
    onIndexed(indexed.flatMap(({ batches }) => batches));
    this.#head = { number: last.number, hash: last.hash };
    this.#reorganisations = 0;
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

  /** One line for each reason, so that a stranger who writes nonsense fills no disk. */
  #report(left: readonly SkippedEntry[]): void {
    if (left.length === 0) return;
    const { metrics, ledger, logger } = this.#parts;
    const counts = new Map<string, { readonly first: SkippedEntry; count: number }>();
    for (const entry of left) {
      metrics.entrySkipped(ledger.groupId, entry.code);
      const known = counts.get(entry.code);
      if (known === undefined) counts.set(entry.code, { first: entry, count: 1 });
      else known.count += 1;
    }
    for (const { first, count } of counts.values()) logger.warn("chain entries skipped", { ...first, count });
  }
}

function namesOpenedIn(blocks: readonly LedgerBlock[]): readonly TopicName[] {
  const entries = blocks.flatMap((block) => block.entries);
  return entries.flatMap((entry) => (entry.kind === "topic-opened" ? (findTopicName(entry.name) ?? []) : []));
}

function addressesIn(blocks: readonly LedgerBlock[]): ReadonlySet<Address> {
  return new Set(blocks.flatMap((block) => block.entries.map((entry) => entry.address)));
}
