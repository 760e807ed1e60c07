import type { EventBatch } from "../../domain/event.ts";
import type { Address } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { groupBy } from "../../lib/group-by.ts";
import type { Logger } from "../../lib/logger.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { BlockRef, Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { SkippedEntry, Store } from "../../ports/store.ts";
import { findTopicName, indexBlocks } from "../index-block.ts";
import { RetainedChanges } from "./retained-changes.ts";

/** Maximum number of topic names in memory, about 200 bytes each. If there are more, the next write drops all of them first. */
const namesKeptMax = 65_536;

export interface BlockIndexerOptions {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Prefix of the keys of extensions. */
  readonly extensionPrefix: string;
  /** Called for each closed topic after the index has committed it. */
  readonly onTopicClosed: (name: TopicName) => void;
  /** The lease on the group's index; undefined if the broker is a single node. */
  readonly lease?: GroupLease | undefined;
}

/** Writes blocks of the chain to the index, and reports the entries that it skips. */
export class BlockIndexer {
  readonly #options: BlockIndexerOptions;
  readonly #retained: RetainedChanges;
  /** Names of indexed topics by contract address. Only a rollback removes a topic from the index. */
  readonly #names = new Map<Address, TopicName>();

  constructor(options: BlockIndexerOptions) {
    this.#options = options;
    this.#retained = new RetainedChanges(options.extensionPrefix);
  }

  /** Commits blocks to the index after `head`, and returns their batches in order. @throws LeaseLostError, and what the store throws. */
  async write(blocks: readonly LedgerBlock[], head: BlockRef | undefined): Promise<readonly EventBatch[]> {
    const { ledger, store, lease, onTopicClosed } = this.#options;
    await this.#learnNames(blocks);
    const indexed = indexBlocks(blocks, this.#names, await this.#findTaken(blocks)).map((block) =>
      this.#retained.addTo(block),
    );
    const after = lease && head;
    await store.applyBlocks(ledger.groupId, indexed, { isFinal: ledger.isFinal, lease, after });
    for (const { name, closed } of indexed.flatMap((block) => block.closed)) if (closed) onTopicClosed(name);
    this.#report(indexed.flatMap(({ skippedEntries = [] }) => skippedEntries));
    return indexed.flatMap(({ batches }) => batches);
  }

  /** Call it when the index rolls back. */
  forgetNames(): void {
    this.#names.clear();
  }

  /** Reads the names of the topics in these blocks from the store, unless they are in memory. */
  async #learnNames(blocks: readonly LedgerBlock[]): Promise<void> {
    const { ledger, store } = this.#options;
    if (this.#names.size > namesKeptMax) this.#names.clear();
    const unknown = addressesIn(blocks).filter((address) => !this.#names.has(address));
    if (unknown.length === 0) return;
    for (const { address, name } of await store.findTopicsByAddress(ledger.groupId, unknown)) {
      this.#names.set(address, name);
    }
  }

  /** Names of new topics in these blocks that an indexed topic already has. */
  async #findTaken(blocks: readonly LedgerBlock[]): Promise<ReadonlySet<TopicName>> {
    const { ledger, store } = this.#options;
    const opened = namesOpenedIn(blocks);
    const topics = opened.length === 0 ? [] : await store.findTopics(ledger.groupId, opened);
    for (const { address, name } of topics) this.#names.set(address, name);
    return new Set(topics.map(({ name }) => name));
  }

  /** Logs one line for each reason, so that somebody who writes malformed entries to the chain cannot fill the disk. */
  #report(left: readonly SkippedEntry[]): void {
    const { metrics, ledger, logger } = this.#options;
    for (const { code } of left) metrics.entrySkipped(ledger.groupId, code);
    for (const entries of groupBy(left, ({ code }) => code).values())
      logger.warn("chain entries skipped", { ...entries[0], count: entries.length });
  }
}

function namesOpenedIn(blocks: readonly LedgerBlock[]): readonly TopicName[] {
  const entries = blocks.flatMap((block) => block.entries);
  return entries.flatMap((entry) => (entry.kind === "topic-opened" ? (findTopicName(entry.name) ?? []) : []));
}

function addressesIn(blocks: readonly LedgerBlock[]): readonly Address[] {
  return [...new Set(blocks.flatMap((block) => block.entries.map((entry) => entry.address)))];
}
