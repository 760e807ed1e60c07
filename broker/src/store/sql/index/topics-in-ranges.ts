import { sql } from "kysely";
import type { NameRange } from "../../../domain/name-range.ts";
import type { SqlDatabase, TopicRow } from "../schema.ts";

export interface TopicsInRanges {
  readonly groupId: string;
  /** No two of them overlap. */
  readonly ranges: readonly NameRange[];
}

interface Page {
  readonly offset: number;
  readonly limit: number;
}

/** A tenant with fewer than one in so many of a group's topics has few. SQLite passes a topic in 0.2 µs, and finds and sorts one in 1 to 5 µs. */
const fewIsOneIn = 20;

/**
 * Reads a page of the topics in some ranges of names, in the order of opening, and counts all of them. `groupCount` is the number of the group's topics: the
 * page of a tenant that has few of them must not cost as much as all of them. In SQLite it runs on the main thread.
 */
export async function readTopicsIn(
  database: SqlDatabase,
  topics: TopicsInRanges,
  { groupCount, ...page }: Page & { readonly groupCount: number },
): Promise<{ readonly rows: readonly TopicRow[]; readonly counted: number }> {
  let counted = 0;
  for (const range of topics.ranges) {
    const { count } = await countTopicsIn(database, topics.groupId, range).executeTakeFirstOrThrow();
    counted += Number(count);
  }
  const areMany = counted * fewIsOneIn >= groupCount;
  const rows = await (areMany ? passTopics(database, topics, page) : findTopicsIn(database, topics, page)).execute();
  // More topics may have been opened since the count.
  return { rows, counted: rows.length === 0 ? counted : Math.max(counted, page.offset + rows.length) };
}

export function countTopicsIn(database: SqlDatabase, groupId: string, range: NameRange) {
  return inRange(database, groupId, range).select(({ fn }) => fn.countAll<number | string>().as("count"));
}

/** Passes the group's topics in the order of opening until the page is full. */
export function passTopics(database: SqlDatabase, { groupId, ranges }: TopicsInRanges, { offset, limit }: Page) {
  const { relaxed, byBytes } = database;
  const name = sql<string>`(${byBytes("name")} || '')`; // No index has this expression.
  return relaxed
    .selectFrom("topics")
    .selectAll()
    .where("group_id", "=", groupId)
    .where((eb) => eb.or(ranges.map(({ from, before }) => eb.and([eb(name, ">=", from), eb(name, "<", before)]))))
    .orderBy("ordinal")
    .limit(limit)
    .offset(offset);
}

/** Finds the topics of each range by their names, and sorts them. With one condition for all ranges, SQLite would pass every topic of the group. */
export function findTopicsIn(database: SqlDatabase, { groupId, ranges }: TopicsInRanges, { offset, limit }: Page) {
  const none = database.relaxed.selectFrom("topics").selectAll().where(sql<boolean>`1 = 0`);
  const [first = none, ...others] = ranges.map((range) => inRange(database, groupId, range).selectAll());
  const all = others.reduce((some, one) => some.unionAll(one), first);
  return all.orderBy("ordinal").limit(limit).offset(offset);
}

function inRange({ relaxed, byBytes }: SqlDatabase, groupId: string, { from, before }: NameRange) {
  const name = byBytes("name");
  const inGroup = relaxed.selectFrom("topics").where("group_id", "=", groupId);
  return inGroup.where(name, ">=", from).where(name, "<", before);
}
