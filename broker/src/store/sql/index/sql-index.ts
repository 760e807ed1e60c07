import type { Compilable, CompiledQuery, Kysely, Transaction } from "kysely";
import { type Event, type EventBatch, lastPositionOf } from "../../../domain/event.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import type { PendingEvents } from "../../../domain/pending-events.ts";
import type { Address, Hash, Topic } from "../../../domain/topic.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import type { VanishedBatch } from "../../../domain/vanished-events.ts";
import { chunksOf } from "../../../lib/chunks.ts";
import type { GroupLease } from "../../../ports/coordinator.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import {
  type ApplyOptions,
  type BatchRange,
  type EventPlace,
  type IndexedBlock,
  type IndexHead,
  LeaseLostError,
  type RetainedEvent,
  type RetainedPage,
  type RollBack,
  type SkippedEntry,
  type PositionRange,
  type RangeCounts,
  type TopicPage,
  type TopicQuery,
  type TopicSize,
  type TopicRange,
  type TopicPosition,
} from "../../../ports/store.ts";
import { type IndexPlan, planBlocks, topicsNamedIn, topicsRetainedIn } from "../../index-plan.ts";
import { countEventsAfterEach, countRange, measureTopic } from "./count-events.ts";
import { createIndexQueries, findTopics, findTopicsByAddress, type IndexQueries } from "./index-queries.ts";
import { Mutex } from "../mutex.ts";
import { findRetained, listRetained, saveRetained } from "./retained-rows.ts";
import { checkRow, withChecksum } from "../row-checksums.ts";
import { fromTopicRow, type KeyedTopic, toBatchKey, toBatchRow, toTopicChange, toTopicRow } from "../rows.ts";
import type { GroupTable, Schema, SqlDatabase, TopicRow } from "../schema.ts";
import { SqlBatches } from "./sql-batches.ts";
import { SqlRepair } from "./sql-repair.ts";
import { listSkipped, rememberSkipped } from "./skipped-entries.ts";
import { findVanished, SqlRollBack } from "./sql-rollback.ts";
import { findTopicsIn } from "./topics-in-ranges.ts";
import { TopicCache } from "./topic-cache.ts";
import { TopicCounts } from "./topic-counts.ts";
import { toIndexError } from "./unfit-block.ts";

/** Maximum number of topics in the cache, which keeps those written last: about 500 bytes each, 25 MB in all. */
const topicsCachedMax = 50_000;

/** Maximum number of topics that one query looks up. */
const topicsFoundMax = 500;

interface Planned {
  readonly plan: IndexPlan;
  /** Keys of the existing topics, by ordinal. */
  readonly topicIds: ReadonlyMap<number, number>;
  readonly batchesTotal: number;
  readonly generation: number;
}

/** The index's part of the store: heads, blocks, topics, batches, retained and vanished events, and skipped entries. */
export class SqlIndex {
  readonly #shared: SqlDatabase;
  readonly #database: Kysely<Schema>;
  readonly #queries: IndexQueries;
  readonly #rollBack: SqlRollBack;
  readonly #batches: SqlBatches;
  readonly #repair: SqlRepair;
  readonly #cache: TopicCache;
  readonly #topicCounts: TopicCounts;
  readonly #applying = new Mutex(); // A change of the index holds this mutex until the cache has the committed state.

  constructor(database: SqlDatabase) {
    this.#shared = database;
    this.#database = database.relaxed;
    this.#cache = new TopicCache(database.isShared ? 0 : topicsCachedMax);
    this.#topicCounts = new TopicCounts(database);
    this.#queries = createIndexQueries(database.relaxed);
    this.#rollBack = new SqlRollBack(database);
    this.#repair = new SqlRepair(database);
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
    // With a lease, other nodes continue from this write: a crash of the database server must not undo it.
    const database = options.lease === undefined ? this.#database : this.#shared.urgent;
    await this.#applying.acquire();
    try {
      const written = await this.#change(database, { groupId, lease: options.lease }, async (transaction) => {
        const planned = await this.#plan(transaction, groupId, { blocks, ...options });
        await rememberSkipped(transaction, groupId, blocks);
        if (!options.isFinal) await this.#rollBack.keep(transaction, groupId, planned.plan.undo);
        return this.#write(transaction, groupId, planned);
      });
      for (const topic of written) this.#cache.set(groupId, topic);
    } catch (error) {
      throw await toIndexError(this.#shared, error, { groupId, isFinal: options.isFinal });
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
      // Clear the cache before the transaction: after the commit, cached topics may no longer exist.
      this.#cache.clear();
      return await this.#change(this.#shared.migrating, { groupId, lease }, async (transaction) =>
        this.#rollBack.rollBack(transaction, groupId, { to, lease }),
      );
    } finally {
      this.#applying.release();
    }
  }

  async findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined> {
    return findVanished(this.#shared, groupId, place);
  }

  async listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]> {
    return listSkipped(this.#shared, groupId, atMost);
  }

  async findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined> {
    return (await this.#findKeyed(this.#database, groupId, name))?.topic;
  }

  async findTopics(groupId: GroupId, names: readonly TopicName[]): Promise<readonly Topic[]> {
    return (await this.#findAllKeyed(this.#database, groupId, names)).map(({ topic }) => topic);
  }

  async findTopicsByAddress(groupId: GroupId, addresses: readonly Address[]): Promise<readonly Topic[]> {
    const { found, missing } = split(addresses, (address) => this.#cache.findByAddress(groupId, address));
    const rows = await this.#findRows(this.#database, missing, (some) =>
      findTopicsByAddress(this.#shared, groupId, some),
    );
    return [...found, ...rows].map(({ topic }) => topic);
  }

  async findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]> {
    return this.#topicsOf(await this.#read(this.#queries.findTopicsByDigest.bind({ groupId, digest })));
  }

  async listTopics(groupId: GroupId, { ranges, ...page }: TopicQuery): Promise<TopicPage> {
    if (ranges !== undefined) return this.#listTopicsIn(groupId, { ...page, ranges });
    const rows = await this.#read(this.#queries.listTopics.bind({ groupId, ...page }));
    return this.#toPage(rows, page, await this.#countTopics(this.#database, groupId));
  }

  /** The prefix ends with a slash, and "0" follows the slash in byte order: so the range contains exactly the names with the prefix. */
  async countTopics(groupId: GroupId, prefix: string, except: readonly string[]): Promise<number> {
    const range = { from: prefix, before: `${prefix.slice(0, -1)}0` };
    return this.#topicCounts.count({ groupId, range, except });
  }

  async findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined> {
    return this.#batches.find(groupId, event.topic, event.sequence);
  }

  async readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    return this.#batches.read(groupId, range);
  }

  async repairBatches(groupId: GroupId, block: IndexedBlock): Promise<readonly EventBatch[]> {
    await this.#applying.acquire();
    try {
      const { migrating, lock } = this.#shared;
      return await migrating.transaction().execute(async (transaction) => {
        await lock(transaction, indexLock(groupId));
        await this.#rollBack.assertHas(transaction, groupId, block);
        return this.#repair.repair(transaction, groupId, {
          batches: block.batches,
          findTopic: async (name) => this.#findKeyed(transaction, groupId, name),
        });
      });
    } finally {
      this.#applying.release();
      this.#batches.onRepaired();
    }
  }

  async dropEvents(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]> {
    await this.#applying.acquire();
    try {
      const { relaxed, lock, rowWriter } = this.#shared;
      const rows = await relaxed.transaction().execute(async (transaction) => {
        await lock(transaction, indexLock(groupId));
        const keys = batches.map((batch) => toBatchKey(groupId, batch));
        return rowWriter.dropEvents(transaction, keys);
      });
      const dropped = new Set(rows.map(({ last_position }) => last_position));
      return batches.filter((batch) => dropped.has(lastPositionOf(batch)));
    } finally {
      this.#applying.release();
    }
  }

  async listRetained(groupId: GroupId, page: RetainedPage): Promise<readonly RetainedEvent[]> {
    return listRetained(this.#shared, groupId, page);
  }

  async countEventsAfter(groupId: GroupId, place: TopicPosition): Promise<number> {
    const topic = await this.#findKeyed(this.#database, groupId, place.topic);
    return topic === undefined ? 0 : this.#batches.countAfter(topic, place.after);
  }

  async countEventsAfterEach(groupId: GroupId, places: readonly TopicPosition[]): Promise<readonly PendingEvents[]> {
    const names = [...new Set(places.map(({ topic }) => topic))];
    const topics = await this.#findAllKeyed(this.#database, groupId, names);
    return countEventsAfterEach(this.#shared, groupId, { places, topics });
  }

  async countRange(groupId: GroupId, range: PositionRange): Promise<RangeCounts> {
    return countRange(this.#shared, groupId, range);
  }

  async measureTopic(groupId: GroupId, range: TopicRange): Promise<TopicSize> {
    const topic = await this.#findKeyed(this.#database, groupId, range.topic);
    return topic === undefined
      ? { batchCount: 0, byteCount: 0, first: undefined }
      : measureTopic(this.#shared, topic, range);
  }

  /** Runs one change of a group's index at a time, and sends a hint to readers. @throws LeaseLostError if `lease` is given but is not held. */
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
      await notify(transaction, [{ kind: "index", groupId }]);
      return result;
    });
  }

  async #plan(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { blocks, after, isFinal }: Pick<ApplyOptions, "after" | "isFinal"> & { readonly blocks: readonly IndexedBlock[] },
  ): Promise<Planned> {
    const row = await this.#findGroup(transaction, groupId);
    const opens = blocks.some((block) => block.opened.length > 0);
    const topicsTotal = opens ? await this.#countTopics(transaction, groupId) : 0;
    const known = await this.#findAllKeyed(transaction, groupId, [...topicsNamedIn(blocks)]);
    const topics = new Map(known.map((record) => [record.topic.name, record]));
    const topicIds = new Map(known.map(({ ordinal, topicId }) => [ordinal, topicId]));
    const head = row === undefined || row.block_number < 0 ? undefined : toHead(row);
    const [batchesTotal, generation] = [row?.batch_count ?? 0, row?.generation ?? 0];
    const retained = await findRetained(this.#shared, transaction, { groupId, names: [...topicsRetainedIn(blocks)] });
    const plan = planBlocks(blocks, { head, after, isFinal, topicsTotal, batchesTotal, topics, retained });
    return { plan, topicIds, batchesTotal: batchesTotal + plan.batches.length, generation };
  }

  /** Returns the new and changed topics as they are after the change. */
  async #write(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { plan, topicIds, batchesTotal, generation }: Planned,
  ): Promise<readonly KeyedTopic[]> {
    const { rowWriter } = this.#shared;
    const ids = new Map(topicIds);
    const opened = plan.opened.map((record) => toTopicRow(groupId, record));
    for (const { ordinal, topic_id } of await rowWriter.insertTopics(transaction, opened)) ids.set(ordinal, topic_id);
    const changes = plan.changed.map((record) => toTopicChange(groupId, idOf(record, ids), record));
    await rowWriter.updateTopics(transaction, changes);
    const batches = plan.batches.map((record) => toBatchRow(groupId, idOf(record, ids), record));
    await rowWriter.insertBatches(transaction, batches);
    await saveRetained(this.#shared, transaction, { groupId, changes: plan.retained });
    const { blockNumber, hash } = plan.head;
    const head = { group_id: groupId, block_number: blockNumber, block_hash: hash };
    const row = withChecksum("groups", { ...head, generation, batch_count: batchesTotal });
    await transaction.executeQuery(this.#queries.saveHead.bind(row));
    return [...plan.opened, ...plan.changed].map((record) => {
      const { topic, digest, ordinal, eventCount } = record;
      return { topicId: idOf(record, ids), topic, digest, ordinal, eventCount };
    });
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

  async #findAllKeyed(
    database: Kysely<Schema>,
    groupId: GroupId,
    names: readonly TopicName[],
  ): Promise<readonly KeyedTopic[]> {
    const { found, missing } = split(names, (name) => this.#cache.find(groupId, name));
    const rows = await this.#findRows(database, missing, (some) => findTopics(this.#shared, groupId, some));
    return [...found, ...rows];
  }

  async #findRows<Key>(
    database: Kysely<Schema>,
    keys: readonly Key[],
    toQuery: (some: readonly Key[]) => Compilable<TopicRow>,
  ): Promise<readonly KeyedTopic[]> {
    const found: KeyedTopic[] = [];
    for (const some of chunksOf(keys, topicsFoundMax)) {
      const { rows } = await database.executeQuery(toQuery(some).compile());
      for (const row of rows) found.push(this.#toKeyed(row));
    }
    return found;
  }

  async #listTopicsIn(groupId: GroupId, { offset, limit, ranges = [] }: TopicQuery): Promise<TopicPage> {
    let counted = 0;
    for (const range of ranges) counted += await this.#topicCounts.count({ groupId, range, except: [] });
    const rows = await findTopicsIn(this.#shared, { groupId, ranges }, { offset, limit }).execute();
    const seen = rows.length === 0 ? 0 : offset + rows.length; // More topics may have been opened since the count.
    return this.#toPage(rows, { offset, limit }, Math.max(counted, seen));
  }

  /** A page and its total. If the page is not full, it is the last one: then the total omits topics that were opened after the query of the page. */
  #toPage(rows: readonly TopicRow[], { offset, limit }: Omit<TopicQuery, "ranges">, counted: number): TopicPage {
    const total = rows.length < limit ? Math.min(counted, offset + rows.length) : counted;
    return { total, topics: this.#topicsOf(rows) };
  }

  /** The newest ordinal is the number of topics. Ordinals count from 1 without gaps, because only rollbacks delete topics, and they delete the newest. */
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

/** The head in a group's row, which `checkRow` has verified. */
function toHead(row: GroupTable): IndexHead {
  return { blockNumber: row.block_number, hash: row.block_hash as Hash, generation: row.generation };
}

/** Name of the lock that every change of a group's index holds. */
export function indexLock(groupId: string): string {
  return `index ${groupId}`;
}

/** The topics found in the cache, and the keys of the others. */
function split<Key, Found>(keys: readonly Key[], find: (key: Key) => Found | undefined) {
  const found: Found[] = [];
  const missing: Key[] = [];
  for (const key of keys) {
    const one = find(key);
    if (one === undefined) missing.push(key);
    else found.push(one);
  }
  return { found, missing };
}

function idOf({ ordinal }: { readonly ordinal: number }, ids: ReadonlyMap<number, number>): number {
  const topicId = ids.get(ordinal);
  if (topicId === undefined) throw new Error(`topic ${ordinal} is in the plan but has no key`);
  return topicId;
}
