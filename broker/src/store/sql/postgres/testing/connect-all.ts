import type { Client } from "pg";
import type { PostgresServer } from "./postgres-server.ts";
import { waitUntilBlocked } from "./wait-until-blocked.ts";

/** Makes a pool open all its connections: a lock of `other` blocks each call on a connection of its own. Ends `other`. */
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
