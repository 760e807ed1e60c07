import { type RawBuilder, sql, type Transaction } from "kysely";
import { eventsPerBlockMax } from "../../../domain/position.ts";
import type { IndexFinding, IndexTable } from "./index-tables.ts";
import type { Schema } from "../schema.ts";

interface IndexCheck {
  readonly table: IndexTable;
  /** What is wrong with the group or topic that the query returns. */
  readonly says: string;
  readonly query: RawBuilder<{ readonly subject: string | number }>;
}

/** The first position beyond the head. */
const beyondHead = sql`(groups.block_number + 1) * ${sql.lit(eventsPerBlockMax)}`;

/**
 * Each check compares rows that one transaction writes together. They disagree if the disk lost the write of some of them; the checksums of the rows
 * still match then. For each group and topic, the checks read a few entries of database indexes; they do not read every batch.
 */
export const indexChecks: readonly IndexCheck[] = [
  {
    table: "groups",
    says: "the group has a batch beyond the index's newest block",
    query: sql`
      select group_id as subject from groups
      where (select max(last_position) from batches where batches.group_id = groups.group_id) >= ${beyondHead} limit 1`,
  },
  {
    table: "groups",
    says: "the group's number of batches differs from the number of its newest batch",
    query: sql`
      select group_id as subject from groups
      where batch_count <> coalesce((
        select ordinal from batches where batches.group_id = groups.group_id order by last_position desc limit 1
      ), 0) limit 1`,
  },
  {
    table: "blocks",
    says: "the group's newest block differs from the newest block that can be rolled back",
    query: sql`
      select group_id as subject from groups
      where block_number <> (select max(number) from blocks where blocks.group_id = groups.group_id) limit 1`,
  },
  {
    table: "groups",
    says: "the topic is newer than the index's newest block",
    query: sql`
      select topics.name as subject from topics left join groups on groups.group_id = topics.group_id
      where groups.group_id is null or topics.block_number > groups.block_number limit 1`,
  },
  {
    table: "topics",
    says: "the group lacks topics before its newest one",
    query: sql`
      select group_id as subject from topics group by group_id having count(*) <> max(ordinal) limit 1`,
  },
  {
    table: "topics",
    says: "the topic ends before its newest batch",
    query: sql`
      select name as subject from topics
      where sequence < (select max(first_sequence) from batches where batches.topic_id = topics.topic_id) limit 1`,
  },
  {
    table: "topics",
    says: "the topic with this key is missing, but has batches",
    query: sql`
      with recursive used(topic_id) as (
        select min(topic_id) from batches
        union all
        select (select min(topic_id) from batches where batches.topic_id > used.topic_id) from used
        where used.topic_id is not null
      )
      select topic_id as subject from used
      where topic_id is not null and not exists (select 1 from topics where topics.topic_id = used.topic_id) limit 1`,
  },
];

/** Finds tables of the index that contradict each other. */
export async function findContradiction(transaction: Transaction<Schema>): Promise<IndexFinding | undefined> {
  for (const { table, says, query } of indexChecks) {
    const [row] = (await query.execute(transaction)).rows;
    if (row !== undefined) return { table, found: `${says} (${row.subject})` };
  }
  return undefined;
}
