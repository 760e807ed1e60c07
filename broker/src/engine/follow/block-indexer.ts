import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Logger } from "../../lib/logger.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { BlockRef, Ledger, LedgerBlock } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { SkippedEntry, Store } from "../../ports/store.ts";
import { findTopicName, indexBlocks } from "./index-block.ts";

export interface BlockIndexerParts {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** The right to write the index, where nodes share the store. */
  readonly lease?: GroupLease | undefined;
}

/** Writes blocks of the chain to the index, and tells of what was left out. */
export class BlockIndexer {
  readonly #parts: BlockIndexerParts;

  constructor(parts: BlockIndexerParts) {
    this.#parts = parts;
  }

  /** Answers the batches of the blocks that follow `head`, in their order, once all is committed. @throws LeaseLostError, and what the store throws. */
  async write(blocks: readonly LedgerBlock[], head: BlockRef | undefined): Promise<readonly EventBatch[]> {
    const { ledger, store, lease } = this.#parts;
    const indexed = indexBlocks(blocks, await findKnownNames(store, ledger.groupId, blocks));
    const after = lease && head;
    await store.applyBlocks(ledger.groupId, indexed, { isFinal: ledger.isFinal, lease, after });
    this.#report(indexed.flatMap(({ leftOut = [] }) => leftOut));
    return indexed.flatMap(({ batches }) => batches);
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

/** Names of the indexed topics that the blocks speak of, by contract or by a name that is opened. */
export async function findKnownNames(
  store: Store,
  groupId: GroupId,
  blocks: readonly LedgerBlock[],
): Promise<ReadonlyMap<Address, TopicName>> {
  const names = new Map<Address, TopicName>();
  const note = (topic: Topic | undefined): void => {
    if (topic !== undefined) names.set(topic.address, topic.name);
  };
  for (const address of addressesIn(blocks)) note(await store.findTopicByAddress(groupId, address));
  for (const name of namesOpenedIn(blocks)) note(await store.findTopic(groupId, name));
  return names;
}

function namesOpenedIn(blocks: readonly LedgerBlock[]): readonly TopicName[] {
  const entries = blocks.flatMap((block) => block.entries);
  return entries.flatMap((entry) => (entry.kind === "topic-opened" ? (findTopicName(entry.name) ?? []) : []));
}

function addressesIn(blocks: readonly LedgerBlock[]): ReadonlySet<Address> {
  return new Set(blocks.flatMap((block) => block.entries.map((entry) => entry.address)));
}
