import type { PostgresServer } from "./postgres-server.ts";

/** Resolves when the given number of calls of stores and coordinators wait for locks of another transaction. */
export async function waitUntilBlocked(server: PostgresServer, count = 1): Promise<void> {
  const waiting = "select 1 from pg_stat_activity where application_name like 'stele%' and wait_event_type = 'Lock'";
  while ((await server.query(waiting)).length < count) continue;
}
