import type { PostgresServer } from "./postgres-server.ts";

/** Answers when so many calls of stores and coordinators wait for what another transaction holds. */
export async function waitUntilBlocked(server: PostgresServer, count = 1): Promise<void> {
  const waiting = "select 1 from pg_stat_activity where application_name like 'stele%' and wait_event_type = 'Lock'";
  while ((await server.query(waiting)).length < count) continue;
}
