import type { Client } from "pg";
import type { PostgresServer } from "./postgres-server.ts";
import { waitUntilBlocked } from "./wait-until-blocked.ts";

/**
 * Makes a pool open all its connections: `call` starts at least `connections` calls of the store at once, and a lock that `other` holds blocks each on its own
 * connection. Ends `other` afterwards.
 */
export async function connectAll(
  server: PostgresServer,
  other: Client,
  { call, connections }: { readonly call: () => Promise<unknown>; readonly connections: number },
): Promise<void> {
  await other.query("begin; lock table groups in access exclusive mode");
  const held = call();
  await waitUntilBlocked(server, connections);
  await other.query("rollback");
  await held;
  await other.end();
}
