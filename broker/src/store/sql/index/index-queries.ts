import type { Kysely } from "kysely";
import { prepare } from "../prepared.ts";
import type { BatchTable, GroupTable, Schema, SqlDatabase, TopicChange, TopicRow } from "../schema.ts";

export type IndexQueries = ReturnType<typeof createIndexQueries>;

interface InGroup {
  readonly groupId: string;
}

interface OfTopic {
  readonly topicId: number;
}

interface Range {
  readonly after: number;
  readonly upTo: number;
  /** The last position of the block of `upTo`. A batch lies in one block, so no later batch begins before `upTo`. */
  readonly upToEndOfBlock: number;
  readonly limit: number;
}

interface BatchSpan {
  readonly after: number;
  readonly last: number;
}

const sizeColumns = ["last_position", "byte_count"] as const;
/** All columns of a batch's row except `events`, with the table's name, since other tables have columns of the same names. */
export const batchPlaceColumns = [
  "batches.group_id",
  "batches.ordinal",
  "batches.first_position",
  "batches.last_position",
  "batches.topic_id",
  "batches.first_sequence",
  "batches.events_before",
  "batches.byte_count",
  "batches.transaction_hash",
  "batches.log_index",
  "batches.publisher",
  "batches.events_checksum",
  "batches.checksum",
] as const;
const batchColumns = [...batchPlaceColumns, "batches.events"] as const;

/** Prepared queries on groups, topics and batches. */
export function createIndexQueries(database: Kysely<Schema>) {
  return {
    ...createGroupQueries(database),
    ...createTopicQueries(database),
    ...createBatchQueries(database),
    ...createRangeQueries(database),
  };
}

/** Topics by their names: one look-up by key for each, in one query. */
export function findTopics({ relaxed, column }: SqlDatabase, groupId: string, names: readonly string[]) {
  return relaxed.selectFrom("topics").selectAll().where("group_id", "=", groupId).where("name", "in", column(names));
}

/** Topics by the addresses of their contracts: one look-up by key for each, in one query. */
export function findTopicsByAddress({ relaxed, column }: SqlDatabase, groupId: string, addresses: readonly string[]) {
  return relaxed
    .selectFrom("topics")
    .selectAll()
    .where("group_id", "=", groupId)
    .where("address", "in", column(addresses));
}

function createGroupQueries(database: Kysely<Schema>) {
  return {
    findHead: prepare(({ groupId }: InGroup) =>
      database.selectFrom("groups").selectAll().where("group_id", "=", groupId),
    ),
    saveHead: prepare(({ group_id, block_number, block_hash, generation, batch_count, checksum }: GroupTable) => {
      const head = { block_number, block_hash, generation, batch_count, checksum };
      return database
        .insertInto("groups")
        .values({ group_id, ...head })
        .onConflict((conflict) => conflict.column("group_id").doUpdateSet(head));
    }),
  };
}

function createTopicQueries(database: Kysely<Schema>) {
  const topics = ({ groupId }: InGroup) => database.selectFrom("topics").selectAll().where("group_id", "=", groupId);
  return {
    findTopic: prepare((values: InGroup & { readonly name: string }) => topics(values).where("name", "=", values.name)),
    findTopicsByDigest: prepare((values: InGroup & { readonly digest: string }) =>
      topics(values).where("digest", "=", values.digest).orderBy("ordinal"),
    ),
    listTopics: prepare((values: InGroup & { readonly offset: number; readonly limit: number }) =>
      topics(values).where("ordinal", ">", values.offset).orderBy("ordinal").limit(values.limit),
    ),
    findNewestTopic: prepare(({ groupId }: InGroup) =>
      database
        .selectFrom("topics")
        .select("ordinal")
        .where("group_id", "=", groupId)
        .orderBy("ordinal", "desc")
        .limit(1),
    ),
    insertTopic: prepare((row: Omit<TopicRow, "topic_id">) => {
      // Names every column, since `prepare` creates a placeholder only for a column that is read.
      const { group_id, ordinal, name, digest, address, sender, created_timestamp } = row;
      const { sequence, block_number, closed, event_count, checksum } = row;
      const identity = { group_id, ordinal, name, digest, address, sender, created_timestamp };
      return database
        .insertInto("topics")
        .values({ ...identity, sequence, block_number, closed, event_count, checksum })
        .returning(["topic_id", "ordinal"]);
    }),
    updateTopic: prepare((row: TopicChange) => {
      const { topic_id, sequence, block_number, closed, event_count, checksum } = row;
      return database
        .updateTable("topics")
        .set({ sequence, block_number, closed, event_count, checksum })
        .where("topic_id", "=", topic_id);
    }),
  };
}

function createBatchQueries(database: Kysely<Schema>) {
  const batches = database.selectFrom("batches");
  return {
    insertBatch: prepare((row: BatchTable) => {
      const { group_id, ordinal, first_position, last_position, topic_id } = row;
      const { first_sequence, events_before, byte_count, transaction_hash, log_index } = row;
      const { publisher, events_checksum, checksum, events } = row;
      const place = { group_id, ordinal, first_position, last_position, topic_id, first_sequence };
      const content = { publisher, events_checksum, checksum, events };
      const values = { ...place, events_before, byte_count, transaction_hash, log_index, ...content };
      return database.insertInto("batches").values(values);
    }),
    findBatch: prepare(({ topicId, sequence }: OfTopic & { readonly sequence: number }) =>
      batches
        .select(batchColumns)
        .where("topic_id", "=", topicId)
        .where("first_sequence", "<=", sequence)
        .orderBy("first_sequence", "desc")
        .limit(1),
    ),
    findNextSequence: prepare(({ topicId, sequence }: OfTopic & { readonly sequence: number }) =>
      batches
        .select(batchPlaceColumns)
        .where("topic_id", "=", topicId)
        .where("first_sequence", ">", sequence)
        .orderBy("first_sequence")
        .limit(1),
    ),
    findNextBatch: prepare(({ topicId, after }: OfTopic & { readonly after: number }) =>
      batches
        .select(batchPlaceColumns)
        .where("topic_id", "=", topicId)
        .where("last_position", ">", after)
        .orderBy("last_position")
        .limit(1),
    ),
  };
}

/** A range is read in two steps: the sizes, which determine where to stop, and then the batches up to there. */
function createRangeQueries(database: Kysely<Schema>) {
  const sizes = (values: Range) =>
    database
      .selectFrom("batches")
      .select(sizeColumns)
      .where("last_position", ">", values.after)
      .where("last_position", "<=", values.upToEndOfBlock)
      .where("first_position", "<=", values.upTo)
      .orderBy("last_position")
      .limit(values.limit);
  return {
    findSizes: prepare((values: Range & InGroup) => sizes(values).where("group_id", "=", values.groupId)),
    findSizesOfTopic: prepare((values: Range & OfTopic) => sizes(values).where("topic_id", "=", values.topicId)),
    // An outer join, so that no planner can start with the topics and sort.
    readBatches: prepare((values: BatchSpan & InGroup) =>
      database
        .selectFrom("batches")
        .leftJoin("topics", "topics.topic_id", "batches.topic_id")
        .select([...batchColumns, "topics.name"])
        .where("batches.group_id", "=", values.groupId)
        .where("batches.last_position", ">", values.after)
        .where("batches.last_position", "<=", values.last)
        .orderBy("last_position"),
    ),
    readBatchesOfTopic: prepare((values: BatchSpan & OfTopic) =>
      database
        .selectFrom("batches")
        .select(batchColumns)
        .where("topic_id", "=", values.topicId)
        .where("last_position", ">", values.after)
        .where("last_position", "<=", values.last)
        .orderBy("last_position"),
    ),
  };
}
