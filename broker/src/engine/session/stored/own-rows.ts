import type { SessionKey, SessionStore, SessionWithFilters } from "../../../ports/session-store.ts";
import type { Connected } from "../connected.ts";

export interface OwnRowsParts {
  readonly store: { readonly sessions: Pick<SessionStore, "findSession"> };
  /** Sessions that are connected to this node, by name. */
  readonly connected: ReadonlyMap<string, Connected>;
}

/**
 * Changes the row of a session whose connection has ended. A rollback, or a caller who removed a filter, may have given the row another epoch that this node
 * has not read. Then the row still says that the session is connected, and nobody else would end it. The caller must hold the lock of the session's name.
 * Returns the key under which `change` succeeded; undefined if the session is gone, or has another connection. `change` gets the row if it was read.
 */
export async function changeOwnRow(
  { store, connected }: OwnRowsParts,
  { name, session, owner }: Connected,
  change: (key: SessionKey, row?: SessionWithFilters) => Promise<boolean>,
): Promise<SessionKey | undefined> {
  const { id } = session;
  let key: SessionKey = { id, epoch: session.key.epoch };
  let found: SessionWithFilters | undefined;
  while (!(await change(key, found))) {
    found = await store.sessions.findSession(id);
    const row = found?.session;
    const isOwn = row !== undefined && row.detachedAt === undefined && row.owner === owner && !connected.has(name);
    if (!isOwn || row.epoch === key.epoch) return undefined;
    key = { id, epoch: row.epoch };
  }
  return key;
}
