import type { CompiledQuery, Kysely, Transaction } from "kysely";
import type { Event, EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { VanishedBatch } from "../../domain/vanished-events.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import {
  type ApplyOptions,
  type BatchRange,
  type EventPlace,
  type IndexedBlock,
  type IndexHead,
  LeaseLostError,
  type RollBack,
  type SkippedEntry,
  type Stretch,
  type StretchCounts,
  type TopicPage,
  type TopicPlace,
} from "../../ports/store.ts";
import { type IndexPlan, planBlocks, type TopicRecord, topicsNamedIn } from "../index-plan.ts";
import { countEventsAfterEach, countStretch } from "./count-events.ts";
import { createIndexQueries, type IndexQueries } from "./index-queries.ts";
import { Mutex } from "./mutex.ts";
import { checkRow, withChecksum } from "./row-checksums.ts";
import { fromTopicRow, type KeyedTopic, toBatchRow, toTopicRow } from "./rows.ts";
import type { GroupTable, Schema, SqlDatabase, TopicRow } from "./schema.ts";
import { SqlBatches } from "./sql-batches.ts";
import { SqlMending } from "./sql-mending.ts";
import { listSkipped, rememberSkipped } from "./skipped-entries.ts";
import { findVanished, SqlRollBack } from "./sql-roll-back.ts";
import { TopicCache } from "./topic-cache.ts";

/** About 5 MB. */
const topicsCachedMax = 10_000;

interface Planned {
  readonly plan: IndexPlan;
  /** Keys of the topics that are there already, by ordinal. */
  readonly topicIds: ReadonlyMap<number, number>;
  readonly batchesTotal: number;
  readonly generation: number;
}

/** The index's half of the store: heads, topics and batches. */
export class SqlIndex {
  readonly #shared: SqlDatabase;
  readonly #database: Kysely<Schema>;
  readonly #queries: IndexQueries;
  readonly #rollBack: SqlRollBack;
  readonly #batches: SqlBatches;
  readonly #mending: SqlMending;
  readonly #cache: TopicCache;
  readonly #applying = new Mutex(); // From the first read of a plan until the cache holds what was committed.

  constructor(database: SqlDatabase) {
    this.#shared = database;
    this.#database = database.relaxed;
    this.#cache = new TopicCache(database.isShared ? 0 : topicsCachedMax);
    this.#queries = createIndexQueries(database.relaxed);
    this.#rollBack = new SqlRollBack(database);
    this.#mending = new SqlMending(database);
    const findTopic = (groupId: GroupId, name: TopicName) => this.#findKeyed(this.#database, groupId, name);
    this.#batches = new SqlBatches({ shared: database, queries: this.#queries, findTopic });
  }

  async findHead(groupId: GroupId): Promise<IndexHead | undefined> {
    return this.#readHead(this.#database, groupId);
  }

  async applyBlocks(
    groupId: GroupId,
    blocks: readonly IndexedBlock[],
    options: ApplyOptions = { isFinal: false },
  ): Promise<void> {
    if (blocks.length === 0) return;
    // Other nodes tell their callers of what they see here and go on from it: a server that dies must not take it back.
    const database = options.lease === undefined ? this.#database : this.#shared.durable;
    await this.#applying.acquire();
    try {
      const written = await this.#change(database, { groupId, lease: options.lease }, async (transaction) => {
        const planned = await this.#plan(transaction, groupId, { blocks, after: options.after });
        await rememberSkipped(transaction, groupId, blocks);
        if (!options.isFinal) await this.#rollBack.keep(transaction, groupId, planned.plan.undo);
        return this.#write(transaction, groupId, planned);
      });
      for (const topic of written) this.#cache.set(groupId, topic);
    } finally {
      this.#applying.release();
    }
  }

  async listBlocks(
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]> {
    return this.#rollBack.listBlocks(this.#database, groupId, page);
  }

  async rollBack(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): Promise<RollBack> {
    await this.#applying.acquire();
    try {
      // Before, so that nobody reads from it what is gone as soon as the transaction is committed.
      this.#cache.clear();
      return await this.#change(this.#shared.migrating, { groupId, lease }, async (transaction) =>
        this.#rollBack.rollBack(transaction, groupId, { to, lease }),
      );
    } finally {
      this.#applying.release();
    }
  }

  async findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined> {
    return findVanished(this.#database, groupId, place);
  }

  async listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]> {
    return listSkipped(this.#database, groupId, atMost);
  }

  async findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined> {
    return (await this.#findKeyed(this.#database, groupId, name))?.topic;
  }

  async findTopicByAddress(groupId: GroupId, address: Address): Promise<Topic | undefined> {
    const [row] = await this.#read(this.#queries.findTopicByAddress.bind({ groupId, address }));
    return row === undefined ? undefined : this.#toKeyed(row).topic;
  }

  async findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]> {
    return this.#topicsOf(await this.#read(this.#queries.findTopicsByDigest.bind({ groupId, digest })));
  }

  /** Topics are only deleted from the newest back, so that the newest ordinal is their number. */
  async listTopics(groupId: GroupId, page: { readonly offset: number; readonly limit: number }): Promise<TopicPage> {
    const rows = await this.#read(this.#queries.listTopics.bind({ groupId, ...page }));
    const total = await this.#countTopics(this.#database, groupId);
    return { total, topics: this.#topicsOf(rows) };
  }

  async findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined> {
    return this.#batches.find(groupId, event.topic, event.sequence);
  }

  async readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    return this.#batches.read(groupId, range);
  }

  async mendBatches(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]> {
    await this.#applying.acquire();
    try {
      const { migrating, lock } = this.#shared;
      return await migrating.transaction().execute(async (transaction) => {
        await lock(transaction, indexLock(groupId));
        return this.#mending.mend(transaction, groupId, {
          batches,
          findTopic: async (name) => this.#findKeyed(transaction, groupId, name),
        });
      });
    } finally {
      this.#applying.release();
      this.#batches.onMended();
    }
  }

  async countEventsAfter(groupId: GroupId, place: TopicPlace): Promise<number> {
    const topic = await this.#findKeyed(this.#database, groupId, place.topic);
    return topic === undefined ? 0 : this.#batches.countAfter(topic, place.after);
  }

  async countEventsAfterEach(groupId: GroupId, places: readonly TopicPlace[]): Promise<readonly number[]> {
    return countEventsAfterEach(this.#shared, groupId, places);
  }

  async countStretch(groupId: GroupId, stretch: Stretch): Promise<StretchCounts> {
    return countStretch(this.#shared, groupId, stretch);
  }

  /** One change of a group's index at a time, by nobody but its follower; who reads the index is told of it. */
  async #change<Result>(
    database: Kysely<Schema>,
    { groupId, lease }: { readonly groupId: GroupId; readonly lease: GroupLease | undefined },
    change: (transaction: Transaction<Schema>) => Promise<Result>,
  ): Promise<Result> {
    const { lock, holdLease, notify } = this.#shared;
    return database.transaction().execute(async (transaction) => {
      await lock(transaction, indexLock(groupId));
      if (lease !== undefined && !(await holdLease(transaction, lease))) throw new LeaseLostError(groupId);
      const result = await change(transaction);
      await notify(transaction, { kind: "index", groupId });
      return result;
    });
  }

  async #plan(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { blocks, after }: { readonly blocks: readonly IndexedBlock[]; readonly after: BlockRef | undefined },
  ): Promise<Planned> {
    const row = await this.#findGroup(transaction, groupId);
    const opens = blocks.some((block) => block.opened.length > 0);
    const topicsTotal = opens ? await this.#countTopics(transaction, groupId) : 0;
    const topics = new Map<TopicName, KeyedTopic>();
    for (const name of topicsNamedIn(blocks)) {
      const known = await this.#findKeyed(transaction, groupId, name);
      if (known !== undefined) topics.set(name, known);
    }
    const topicIds = new Map([...topics.values()].map(({ ordinal, topicId }) => [ordinal, topicId]));
    const head = row === undefined || row.block_number < 0 ? undefined : toHead(row);
    const [batchesTotal, generation] = [row?.batch_count ?? 0, row?.generation ?? 0];
    const plan = planBlocks(blocks, { head, after, topicsTotal, batchesTotal, topics });
    return { plan, topicIds, batchesTotal: batchesTotal + plan.batches.length, generation };
  }

  /** Answers the topics as they are then. */
  async #write(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { plan, topicIds, batchesTotal, generation }: Planned,
  ): Promise<readonly KeyedTopic[]> {
    const ids = new Map(topicIds);
    for (const record of plan.opened) ids.set(record.ordinal, await this.#insertTopic(transaction, groupId, record));
    for (const record of plan.changed) {
      const row = { ...toTopicRow(groupId, record), topic_id: idOf(record, ids) };
      await transaction.executeQuery(this.#queries.updateTopic.bind(row));
    }
    for (const record of plan.batches) {
      const row = toBatchRow(groupId, idOf(record, ids), record);
      await transaction.executeQuery(this.#queries.insertBatch.bind(row));
    }
    const { blockNumber, hash } = plan.head;
    const head = { group_id: groupId, block_number: blockNumber, block_hash: hash };
    const row = withChecksum("groups", { ...head, generation, batch_count: batchesTotal });
    await transaction.executeQuery(this.#queries.saveHead.bind(row));
    return [...plan.opened, ...plan.changed].map((record) => ({ ...record, topicId: idOf(record, ids) }));
  }

  async #insertTopic(transaction: Transaction<Schema>, groupId: GroupId, record: TopicRecord): Promise<number> {
    const { rows } = await transaction.executeQuery(this.#queries.insertTopic.bind(toTopicRow(groupId, record)));
    const [row] = rows;
    if (row === undefined) throw new Error("the database gave a new topic no key");
    return row.topic_id;
  }

  async #findGroup(database: Kysely<Schema>, groupId: GroupId): Promise<GroupTable | undefined> {
    const { rows } = await database.executeQuery(this.#queries.findHead.bind({ groupId }));
    return rows[0] && checkRow(this.#shared, "groups", rows[0]);
  }

  async #readHead(database: Kysely<Schema>, groupId: GroupId): Promise<IndexHead | undefined> {
    const row = await this.#findGroup(database, groupId);
    if (row === undefined || row.block_number < 0) return undefined;
    return toHead(row);
  }

  async #findKeyed(database: Kysely<Schema>, groupId: GroupId, name: TopicName): Promise<KeyedTopic | undefined> {
    const cached = this.#cache.find(groupId, name);
    if (cached !== undefined) return cached;
    const { rows } = await database.executeQuery(this.#queries.findTopic.bind({ groupId, name }));
    return rows[0] === undefined ? undefined : this.#toKeyed(rows[0]);
  }

  async #countTopics(database: Kysely<Schema>, groupId: GroupId): Promise<number> {
    const { rows } = await database.executeQuery(this.#queries.findNewestTopic.bind({ groupId }));
    return rows[0]?.ordinal ?? 0;
  }

  #toKeyed(row: TopicRow): KeyedTopic {
    return fromTopicRow(checkRow(this.#shared, "topics", row));
  }

  #topicsOf(rows: readonly TopicRow[]): readonly Topic[] {
    return rows.map((row) => this.#toKeyed(row).topic);
  }

  async #read<Row>(query: CompiledQuery<Row>): Promise<readonly Row[]> {
    return (await this.#database.executeQuery(query)).rows;
  }
}

/** The hash is as it was given to applyBlocks. */
function toHead(row: GroupTable): IndexHead {
  return { blockNumber: row.block_number, hash: row.block_hash as Hash, generation: row.generation };
}

/** Held by whoever changes a group's index. */
function indexLock(groupId: GroupId): string {
  return `index ${groupId}`;
}

function idOf({ ordinal }: { readonly ordinal: number }, ids: ReadonlyMap<number, number>): number {
  const topicId = ids.get(ordinal);
  if (topicId === undefined) throw new Error(`topic ${ordinal} is planned and has no key`);
  return topicId;
}
