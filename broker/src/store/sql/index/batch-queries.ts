import { type Kysely, sql } from "kysely";
import { batchPlaceColumns } from "./index-queries.ts";
import { prepare } from "../prepared.ts";
import type { BatchTable, Schema } from "../schema.ts";

/** Counters at both ends of a range of batches: `ordinal` in a group, `events_before` in a topic. Neither has gaps; see BatchTable. */
export interface Ends {
  /** The counter that the first batch of the range must have. */
  readonly first: number;
  /** The counter that the batch after the range has, or will have. */
  readonly next: number;
}

/** A range of stored batches: from a position (exclusive) up to the last position of its last batch. */
interface BatchSpan {
  readonly after: number;
  readonly last: number;
}
type OfGroup = BatchSpan & { readonly groupId: string };
type OfTopic = BatchSpan & { readonly topicId: number };

interface Key {
  readonly groupId: string;
  readonly last: number;
  readonly topicId: number;
  readonly sequence: number;
}

/** Queries that detect missing or damaged batches, and repair them. */
export function createBatchQueries(database: Kysely<Schema>) {
  return { ...createEndQueries(database), ...createNeighbourQueries(database), ...createRepairQueries(database) };
}

function createEndQueries(database: Kysely<Schema>) {
  return {
    endsInGroup: prepare(({ groupId, after, last }: OfGroup) =>
      database.selectNoFrom([
        sql<number>`1 + coalesce((select ordinal from batches where group_id = ${groupId}
          and last_position <= ${after} order by last_position desc limit 1), 0)`.as("first"),
        sql<number>`coalesce((select ordinal from batches where group_id = ${groupId}
          and last_position > ${last} order by last_position limit 1),
          (select batch_count + 1 from groups where group_id = ${groupId}), 1)`.as("next"),
      ]),
    ),
    endsInTopic: prepare(({ topicId, after, last }: OfTopic) =>
      database.selectNoFrom([
        sql<number>`coalesce((select events_before + last_position - first_position + 1 from batches
          where topic_id = ${topicId} and last_position <= ${after} order by last_position desc limit 1), 0)`.as(
          "first",
        ),
        sql<number>`coalesce((select events_before from batches where topic_id = ${topicId}
          and last_position > ${last} order by last_position limit 1),
          (select event_count from topics where topic_id = ${topicId}), 0)`.as("next"),
      ]),
    ),
  };
}

/** Queries for the neighbours of a place: in the group, the batches before and after a position; in the topic, the batch before a sequence. */
function createNeighbourQueries(database: Kysely<Schema>) {
  const inGroup = ({ groupId }: { readonly groupId: string }) =>
    database
      .selectFrom("batches")
      .leftJoin("topics", "topics.topic_id", "batches.topic_id")
      .select([...batchPlaceColumns, "topics.name"])
      .where("batches.group_id", "=", groupId)
      .limit(1);
  const ofTopic = ({ topicId }: { readonly topicId: number }) =>
    database.selectFrom("batches").select(batchPlaceColumns).where("topic_id", "=", topicId).limit(1);
  return {
    beforeInGroup: prepare((values: { readonly groupId: string; readonly position: number }) =>
      inGroup(values).where("batches.last_position", "<=", values.position).orderBy("batches.last_position", "desc"),
    ),
    afterInGroup: prepare((values: { readonly groupId: string; readonly position: number }) =>
      inGroup(values).where("batches.last_position", ">", values.position).orderBy("batches.last_position"),
    ),
    beforeInTopic: prepare((values: { readonly topicId: number; readonly sequence: number }) =>
      ofTopic(values).where("first_sequence", "<", values.sequence).orderBy("first_sequence", "desc"),
    ),
  };
}

function createRepairQueries(database: Kysely<Schema>) {
  const columns = [...batchPlaceColumns, "batches.events"] as const;
  const found = () => database.selectFrom("batches").select(columns);
  const changed = (row: BatchTable) => {
    const { group_id, ordinal, first_position, last_position, topic_id, first_sequence, events_before } = row;
    const { byte_count, transaction_hash, log_index, publisher, events_checksum, checksum, events } = row;
    const place = { group_id, ordinal, first_position, last_position, topic_id, first_sequence, events_before };
    const content = { byte_count, transaction_hash, log_index, publisher, events_checksum, checksum, events };
    return database.updateTable("batches").set({ ...place, ...content });
  };
  return {
    findBySequence: prepare(({ topicId, sequence }: Key) =>
      found().where("topic_id", "=", topicId).where("first_sequence", "=", sequence),
    ),
    findByPosition: prepare(({ groupId, last }: Key) =>
      found().where("group_id", "=", groupId).where("last_position", "=", last),
    ),
    repairBySequence: prepare((row: BatchTable) => {
      const query = changed(row);
      return query.where("topic_id", "=", row.topic_id).where("first_sequence", "=", row.first_sequence);
    }),
    repairByPosition: prepare((row: BatchTable) => {
      const query = changed(row);
      return query.where("group_id", "=", row.group_id).where("last_position", "=", row.last_position);
    }),
  };
}
