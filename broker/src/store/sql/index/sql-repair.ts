import type { CompiledQuery, Transaction } from "kysely";
import type { EventBatch } from "../../../domain/event.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { createBatchQueries } from "./batch-queries.ts";
import { checksumOfRow } from "../row-checksums.ts";
import { type KeyedTopic, toBatchRow } from "../rows.ts";
import type { BatchTable, Schema, SqlDatabase } from "../schema.ts";
import { checkPlace, countOf, toBatch, writtenChecksum } from "./sql-batches.ts";

/** Rewrites batches whose rows are damaged or missing. Every method runs in the given transaction. */
export class SqlRepair {
  readonly #database: SqlDatabase;
  readonly #queries;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#queries = createBatchQueries(database.relaxed);
  }

  /**
   * See `Store.repairBatches`. Batches ascend, so the given batches before each one are already repaired.
   * @throws IndexDamagedError if a batch that is not given, just before a given one, is damaged.
   */
  async repair(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { batches, findTopic }: { readonly batches: readonly EventBatch[]; readonly findTopic: FindTopic },
  ): Promise<readonly EventBatch[]> {
    const damaged: EventBatch[] = [];
    for (const batch of batches) {
      const topic = await findTopic(batch.topic);
      if (topic === undefined) continue;
      const derived = await this.#toRow(transaction, groupId, { batch, topic });
      const found = await this.#find(transaction, derived);
      const row = withKeptCounters(derived, found, batch.topic);
      if (isIntact(row, found, batch.topic)) continue;
      await this.#write(transaction, row, found);
      damaged.push(batch);
    }
    return damaged;
  }

  /** The row of a batch as the index first wrote it. Its counters continue those of the batches before it. */
  async #toRow(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { batch, topic }: { readonly batch: EventBatch; readonly topic: KeyedTopic },
  ): Promise<BatchTable> {
    const { topicId, ordinal } = topic;
    const place = { groupId, position: batch.firstPosition - 1 };
    const [inGroup] = await read(transaction, this.#queries.beforeInGroup.bind(place));
    const [inTopic] = await read(
      transaction,
      this.#queries.beforeInTopic.bind({ topicId, sequence: batch.firstSequence }),
    );
    if (inGroup !== undefined) checkPlace(inGroup, inGroup.name ?? "");
    if (inTopic !== undefined) checkPlace(inTopic, batch.topic);
    const eventsBefore = inTopic === undefined ? 0 : inTopic.events_before + countOf(inTopic);
    return toBatchRow(groupId, topicId, { batch, ordinal, eventsBefore, number: (inGroup?.ordinal ?? 0) + 1 });
  }

  /**
   * Writes a row. An update of a row removes its old keys from each index; damaged keys would remove another batch's entry. So the
   * indexes are rebuilt first if a key is damaged or does not find the row. Then one of the keys finds the row. If none does, the row is missing.
   */
  async #write(transaction: Transaction<Schema>, row: BatchTable, found: Found): Promise<void> {
    if (!found.every((kept) => kept !== undefined && hasKeysOf(kept, row))) {
      await this.#database.reindexBatches(transaction);
    }
    const queries = [this.#queries.repairBySequence, this.#queries.repairByPosition];
    for (const query of queries) {
      const { numAffectedRows } = await transaction.executeQuery(query.bind(row));
      if (numAffectedRows === 1n) return;
    }
    await transaction.insertInto("batches").values(row).execute();
  }

  /** Finds the row by each of its keys. A query by one key reads the other from the row; a query by both could answer from an index without reading the row. */
  async #find(transaction: Transaction<Schema>, row: BatchTable): Promise<Found> {
    const key = {
      groupId: row.group_id,
      last: row.last_position,
      topicId: row.topic_id,
      sequence: row.first_sequence,
    };
    const [bySequence] = await read(transaction, this.#queries.findBySequence.bind(key));
    const [byPosition] = await read(transaction, this.#queries.findByPosition.bind(key));
    return [bySequence, byPosition];
  }
}

/** A batch's row by each of its keys; undefined where a key does not find it. */
type Found = readonly (BatchTable | undefined)[];

type FindTopic = (name: TopicName) => Promise<KeyedTopic | undefined>;

async function read<Row>(transaction: Transaction<Schema>, query: CompiledQuery<Row>): Promise<readonly Row[]> {
  return (await transaction.executeQuery(query)).rows;
}

/**
 * Returns `row` with the counters of a stored row, if that row's checksum confirms them. The counters of `row` itself continue those of the newest earlier
 * batch that is stored, so they are wrong if the batch just before is missing.
 */
function withKeptCounters(row: BatchTable, found: Found, name: string): BatchTable {
  for (const kept of found) {
    if (kept === undefined) continue;
    const candidate = { ...row, ordinal: kept.ordinal, events_before: kept.events_before };
    const checksum = checksumOfRow("batches", candidate, name);
    if (checksum === writtenChecksum(kept)) return { ...candidate, checksum };
  }
  return row;
}

function isIntact(row: BatchTable, found: Found, name: string): boolean {
  return found.every((kept) => kept !== undefined && writtenChecksum(kept) === row.checksum && isReadable(kept, name));
}

function isReadable(row: BatchTable, name: string): boolean {
  try {
    toBatch(row, name);
    return true;
  } catch {
    return false;
  }
}

function hasKeysOf(kept: BatchTable, row: BatchTable): boolean {
  return (
    kept.group_id === row.group_id &&
    kept.last_position === row.last_position &&
    kept.topic_id === row.topic_id &&
    kept.first_sequence === row.first_sequence
  );
}
