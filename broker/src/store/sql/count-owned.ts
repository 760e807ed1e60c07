import { type Kysely, sql } from "kysely";
import type { NodeId } from "../../domain/node.ts";
import type { OwnedCount } from "../../ports/store.ts";
import type { Schema } from "./schema.ts";

interface OwnedRow {
  readonly owner: string | null;
  /** PostgreSQL returns sums as strings. */
  readonly subscriptions: number | string;
  readonly sessions: number | string;
}

/** See `Store.countOwned`. */
export async function countOwned(database: Kysely<Schema>): Promise<readonly OwnedCount[]> {
  const { rows } = await sql<OwnedRow>`
    select owner, sum(subscriptions) as subscriptions, sum(sessions) as sessions
    from (
      select owner, count(*) as subscriptions, 0 as sessions from subscriptions group by owner
      union all
      select owner, 0, count(*) from sessions where detached_at is null group by owner
    ) as owned
    group by owner`.execute(database);
  return rows.map(({ owner, subscriptions, sessions }) => ({
    owner: (owner ?? undefined) as NodeId | undefined, // Unchanged since it was stored.
    subscriptions: Number(subscriptions),
    sessions: Number(sessions),
  }));
}
