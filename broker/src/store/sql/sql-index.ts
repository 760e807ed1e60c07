import type { CompiledQuery, Kysely, Transaction } from "kysely";
import type { Event, EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { blockOf, endOfBlock, type Position } from "../../domain/position.ts";
import type { Address, Hash, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchRange, IndexedBlock, IndexHead, TopicPage } from "../../ports/store.ts";
import { type IndexPlan, planBlocks, type TopicRecord, topicsNamedIn } from "../index-plan.ts";
import { createIndexQueries, type IndexQueries } from "./index-queries.ts";
import { Mutex } from "./mutex.ts";
import { fromBatchRow, fromTopicRow, toBatchRow, toTopicRow } from "./rows.ts";
import type { BatchTable, Schema, SqlDatabase, TopicTable } from "./schema.ts";
import { TopicCache } from "./topic-cache.ts";

/** About 5 MB. */
const topicsCachedMax = 10_000;

/** The index's half of the store: heads, topics and batches. */
export class SqlIndex {
  readonly #database: Kysely<Schema>;
  readonly #queries: IndexQueries;
  readonly #cache = new TopicCache(topicsCachedMax);
  readonly #applying = new Mutex(); // From the first read of a plan until the cache holds what was committed.

  constructor({ relaxed }: SqlDatabase) {
    this.#database = relaxed;
    this.#queries = createIndexQueries(relaxed);
  }

  async findHead(groupId: GroupId): Promise<IndexHead | undefined> {
    return this.#readHead(this.#database, groupId);
  }

  async applyBlocks(groupId: GroupId, blocks: readonly IndexedBlock[]): Promise<void> {
    if (blocks.length === 0) return;
    await this.#applying.acquire();
    try {
      const plan = await this.#database.transaction().execute(async (transaction) => {
        const plan = await this.#plan(transaction, groupId, blocks);
        await this.#write(transaction, groupId, plan);
        return plan;
      });
      for (const record of [...plan.opened, ...plan.changed]) this.#cache.set(groupId, record);
    } finally {
      this.#applying.release();
    }
  }

  async findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined> {
    const record = this.#cache.find(groupId, name) ?? (await this.#readTopic(this.#database, groupId, name));
    return record?.topic;
  }

  async findTopicByAddress(groupId: GroupId, address: Address): Promise<Topic | undefined> {
    const [row] = await this.#read(this.#queries.findTopicByAddress.bind({ groupId, address }));
    return row === undefined ? undefined : fromTopicRow(row).topic;
  }

  async findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]> {
    return topicsOf(await this.#read(this.#queries.findTopicsByDigest.bind({ groupId, digest })));
  }

  /** Topics are never deleted, so that the newest ordinal is their number. */
  async listTopics(groupId: GroupId, page: { readonly offset: number; readonly limit: number }): Promise<TopicPage> {
    const rows = await this.#read(this.#queries.listTopics.bind({ groupId, ...page }));
    const total = await this.#countTopics(this.#database, groupId);
    return { total, topics: topicsOf(rows) };
  }

  async findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined> {
    const { topic: name, sequence } = event;
    const [row] = await this.#read(this.#queries.findBatch.bind({ groupId, name, sequence }));
    const batch = row && fromBatchRow(row, name);
    return batch !== undefined && sequence < batch.firstSequence + batch.count ? batch : undefined;
  }

  async readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    if (range.upTo <= range.after) return [];
    return range.topic === undefined
      ? this.#readGroup(groupId, range)
      : this.#readTopicBatches(groupId, range, range.topic);
  }

  /** Positions after which a topic has no batch leave nothing; else what comes before the next batch, and in it, is taken off. */
  async countEventsAfter(
    groupId: GroupId,
    place: { readonly topic: TopicName; readonly after: Position },
  ): Promise<number> {
    const { topic: name, after } = place;
    const [row] = await this.#read(this.#queries.findCountAfter.bind({ groupId, name, after }));
    if (row === undefined) return 0;
    return row.event_count - row.events_before - Math.max(0, after - row.first_position + 1);
  }

  async #plan(transaction: Transaction<Schema>, groupId: GroupId, blocks: readonly IndexedBlock[]): Promise<IndexPlan> {
    const head = await this.#readHead(transaction, groupId);
    const opens = blocks.some((block) => block.opened.length > 0);
    const topicsTotal = opens ? await this.#countTopics(transaction, groupId) : 0;
    const topics = new Map<TopicName, TopicRecord>();
    for (const name of topicsNamedIn(blocks)) {
      const record = this.#cache.find(groupId, name) ?? (await this.#readTopic(transaction, groupId, name));
      if (record !== undefined) topics.set(name, record);
    }
    return planBlocks(blocks, { head, topicsTotal, topics });
  }

  async #write(transaction: Transaction<Schema>, groupId: GroupId, plan: IndexPlan): Promise<void> {
    const { saveHead, insertTopic, updateTopic, insertBatch } = this.#queries;
    for (const record of plan.opened) await transaction.executeQuery(insertTopic.bind(toTopicRow(groupId, record)));
    for (const record of plan.changed) await transaction.executeQuery(updateTopic.bind(toTopicRow(groupId, record)));
    for (const record of plan.batches) await transaction.executeQuery(insertBatch.bind(toBatchRow(groupId, record)));
    const { blockNumber, hash } = plan.head;
    await transaction.executeQuery(saveHead.bind({ group_id: groupId, block_number: blockNumber, block_hash: hash }));
  }

  async #readGroup(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    const sizes = await this.#read(this.#queries.findSizes.bind({ groupId, ...bounds(range) }));
    const last = lastWithin(sizes, range.bytesMax);
    if (last === undefined) return [];
    const rows = await this.#read(this.#queries.readBatches.bind({ groupId, after: range.after, last }));
    return rows.map((row) => fromBatchRow(row, row.name ?? ""));
  }

  async #readTopicBatches(groupId: GroupId, range: BatchRange, name: TopicName): Promise<readonly EventBatch[]> {
    const record = this.#cache.find(groupId, name) ?? (await this.#readTopic(this.#database, groupId, name));
    if (record === undefined) return [];
    const { ordinal } = record;
    const sizes = await this.#read(this.#queries.findSizesOfTopic.bind({ groupId, ordinal, ...bounds(range) }));
    const last = lastWithin(sizes, range.bytesMax);
    if (last === undefined) return [];
    const stretch = { groupId, ordinal, after: range.after, last };
    const rows = await this.#read(this.#queries.readBatchesOfTopic.bind(stretch));
    return rows.map((row) => fromBatchRow(row, name));
  }

  async #readHead(database: Kysely<Schema>, groupId: GroupId): Promise<IndexHead | undefined> {
    const { rows } = await database.executeQuery(this.#queries.findHead.bind({ groupId }));
    const [row] = rows;
    // The hash is as it was given to applyBlocks.
    return row === undefined ? undefined : { blockNumber: row.block_number, hash: row.block_hash as Hash };
  }

  async #readTopic(database: Kysely<Schema>, groupId: GroupId, name: TopicName): Promise<TopicRecord | undefined> {
    const { rows } = await database.executeQuery(this.#queries.findTopic.bind({ groupId, name }));
    return rows[0] === undefined ? undefined : fromTopicRow(rows[0]);
  }

  async #countTopics(database: Kysely<Schema>, groupId: GroupId): Promise<number> {
    const { rows } = await database.executeQuery(this.#queries.countTopics.bind({ groupId }));
    return rows[0]?.ordinal ?? 0;
  }

  async #read<Row>(query: CompiledQuery<Row>): Promise<readonly Row[]> {
    return (await this.#database.executeQuery(query)).rows;
  }
}

function topicsOf(rows: readonly TopicTable[]): readonly Topic[] {
  return rows.map((row) => fromTopicRow(row).topic);
}

function bounds(range: BatchRange) {
  const { after, upTo, batchesMax } = range;
  return { after, upTo, upToEndOfBlock: endOfBlock(blockOf(upTo)), limit: batchesMax };
}

/** The last position of the batch with which the bytes are reached; of the last batch when they are not. */
function lastWithin(
  sizes: readonly Pick<BatchTable, "last_position" | "byte_count">[],
  bytesMax: number,
): number | undefined {
  let bytes = 0;
  for (const size of sizes) {
    bytes += size.byte_count;
    if (bytes >= bytesMax) return size.last_position;
  }
  return sizes.at(-1)?.last_position;
}
