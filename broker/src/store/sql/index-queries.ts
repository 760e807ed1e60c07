import type { Kysely } from "kysely";
import { prepare } from "./prepared.ts";
import type { BatchTable, GroupTable, Schema, TopicTable } from "./schema.ts";

export type IndexQueries = ReturnType<typeof createIndexQueries>;

interface Named {
  readonly groupId: string;
  readonly name: string;
}

interface Range {
  readonly groupId: string;
  readonly after: number;
  readonly upTo: number;
  /** The last position of the block of `upTo`. A batch lies in one block, so nothing beyond can begin before `upTo`. */
  readonly upToEndOfBlock: number;
  readonly limit: number;
}

interface Stretch {
  readonly groupId: string;
  readonly after: number;
  readonly last: number;
}

const sizeColumns = ["last_position", "byte_count"] as const;
const batchColumns = ["first_position", "last_position", "first_sequence", "events"] as const;

/** Every query on groups, topics and batches. */
export function createIndexQueries(database: Kysely<Schema>) {
  return { ...createGroupQueries(database), ...createTopicQueries(database), ...createBatchQueries(database) };
}

function createGroupQueries(database: Kysely<Schema>) {
  return {
    findHead: prepare((values: { readonly groupId: string }) =>
      database.selectFrom("groups").select(["block_number", "block_hash"]).where("group_id", "=", values.groupId),
    ),
    saveHead: prepare(({ group_id, block_number, block_hash }: GroupTable) =>
      database
        .insertInto("groups")
        .values({ group_id, block_number, block_hash })
        .onConflict((conflict) => conflict.column("group_id").doUpdateSet({ block_number, block_hash })),
    ),
  };
}

function createTopicQueries(database: Kysely<Schema>) {
  const topics = database.selectFrom("topics").selectAll();
  return {
    findTopic: prepare((values: Named) =>
      topics.where("group_id", "=", values.groupId).where("name", "=", values.name),
    ),
    findTopicByAddress: prepare((values: { readonly groupId: string; readonly address: string }) =>
      topics.where("group_id", "=", values.groupId).where("address", "=", values.address),
    ),
    findTopicsByDigest: prepare((values: { readonly groupId: string; readonly digest: string }) =>
      topics.where("group_id", "=", values.groupId).where("digest", "=", values.digest).orderBy("ordinal"),
    ),
    listTopics: prepare((values: { readonly groupId: string; readonly offset: number; readonly limit: number }) =>
      topics
        .where("group_id", "=", values.groupId)
        .where("ordinal", ">", values.offset)
        .orderBy("ordinal")
        .limit(values.limit),
    ),
    countTopics: prepare((values: { readonly groupId: string }) =>
      database
        .selectFrom("topics")
        .select("ordinal")
        .where("group_id", "=", values.groupId)
        .orderBy("ordinal", "desc")
        .limit(1),
    ),
    insertTopic: prepare((row: TopicTable) => database.insertInto("topics").values(columnsOfTopic(row))),
    updateTopic: prepare(
      (row: Pick<TopicTable, "group_id" | "ordinal" | "sequence" | "block_number" | "closed" | "event_count">) =>
        database
          .updateTable("topics")
          .set({
            sequence: row.sequence,
            block_number: row.block_number,
            closed: row.closed,
            event_count: row.event_count,
          })
          .where("group_id", "=", row.group_id)
          .where("ordinal", "=", row.ordinal),
    ),
  };
}

/** A copy, column by column, since stand-ins are made as they are asked for. */
function columnsOfTopic(row: TopicTable): TopicTable {
  const { group_id, ordinal, name, digest, address, sender, created_timestamp } = row;
  const { sequence, block_number, closed, event_count } = row;
  return {
    group_id,
    ordinal,
    name,
    digest,
    address,
    sender,
    created_timestamp,
    sequence,
    block_number,
    closed,
    event_count,
  };
}

function createBatchQueries(database: Kysely<Schema>) {
  const ofTopic = database
    .selectFrom("topics")
    .innerJoin("batches", (join) =>
      join.onRef("batches.group_id", "=", "topics.group_id").onRef("batches.topic_ordinal", "=", "topics.ordinal"),
    );
  return {
    ...createRangeQueries(database),
    insertBatch: prepare((row: BatchTable) => {
      const { group_id, first_position, last_position, topic_ordinal } = row;
      const { first_sequence, events_before, byte_count, events } = row;
      const place = { group_id, first_position, last_position, topic_ordinal, first_sequence };
      return database.insertInto("batches").values({ ...place, events_before, byte_count, events });
    }),
    findBatch: prepare((values: Named & { readonly sequence: number }) =>
      ofTopic
        .select(batchColumns)
        .where("topics.group_id", "=", values.groupId)
        .where("topics.name", "=", values.name)
        .where("batches.first_sequence", "<=", values.sequence)
        .orderBy("batches.first_sequence", "desc")
        .limit(1),
    ),
    findCountAfter: prepare((values: Named & { readonly after: number }) =>
      ofTopic
        .select(["topics.event_count", "batches.events_before", "batches.first_position"])
        .where("topics.group_id", "=", values.groupId)
        .where("topics.name", "=", values.name)
        .where("batches.last_position", ">", values.after)
        .orderBy("batches.last_position")
        .limit(1),
    ),
  };
}

/** A range is read in two steps: the sizes, which tell where to stop, and then the batches up to there. */
function createRangeQueries(database: Kysely<Schema>) {
  const sizes = (values: Range) =>
    database
      .selectFrom("batches")
      .select(sizeColumns)
      .where("group_id", "=", values.groupId)
      .where("last_position", ">", values.after)
      .where("last_position", "<=", values.upToEndOfBlock)
      .where("first_position", "<=", values.upTo)
      .orderBy("last_position")
      .limit(values.limit);
  // An outer join, so that no planner may begin with the topics and sort.
  const batches = (values: Stretch) =>
    database
      .selectFrom("batches")
      .leftJoin("topics", (join) =>
        join.onRef("topics.group_id", "=", "batches.group_id").onRef("topics.ordinal", "=", "batches.topic_ordinal"),
      )
      .select([...batchColumns, "topics.name"])
      .where("batches.group_id", "=", values.groupId)
      .where("batches.last_position", ">", values.after)
      .where("batches.last_position", "<=", values.last)
      .orderBy("batches.last_position");
  return {
    findSizes: prepare(sizes),
    findSizesOfTopic: prepare((values: Range & { readonly ordinal: number }) =>
      sizes(values).where("topic_ordinal", "=", values.ordinal),
    ),
    readBatches: prepare(batches),
    readBatchesOfTopic: prepare((values: Stretch & { readonly ordinal: number }) =>
      batches(values).where("batches.topic_ordinal", "=", values.ordinal),
    ),
  };
}
