import { sql } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import type { TopicPlace } from "../../ports/store.ts";
import type { SqlDatabase } from "./schema.ts";

/** See the port. */
export async function countEventsAfterEach(
  database: SqlDatabase,
  groupId: GroupId,
  places: readonly TopicPlace[],
): Promise<readonly number[]> {
  if (places.length === 0) return [];
  const { rows } = await eventsAfterEach(database, groupId, places).execute(database.relaxed);
  const counts = new Map(rows.map(({ place, count }) => [place, count]));
  return places.map((_, place) => counts.get(place) ?? 0);
}

/**
 * Of each place whose topic there is: all events but those that come before the next batch, and in it; none where no batch is left. The cross
 * join is what has SQLite begin with the places, and not go through all of them for each topic (10,000 places took 2.9 s so).
 */
export function eventsAfterEach({ places: table }: SqlDatabase, groupId: GroupId, places: readonly TopicPlace[]) {
  return sql<{ readonly place: number; readonly count: number }>`
    select given.place, coalesce((
      select topics.event_count - events_before - case when first_position > given.after then 0 else given.after - first_position + 1 end
      from batches where batches.topic_id = topics.topic_id and last_position > given.after
      order by last_position limit 1
    ), 0) as count
    from ${table(places)} as given cross join topics
    where topics.group_id = ${groupId} and topics.name = given.topic`;
}
