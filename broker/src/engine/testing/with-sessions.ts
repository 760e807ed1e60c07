import { withCalls } from "../../lib/with-calls.ts";
import type { Store } from "../../ports/store.ts";

/** The store, with some calls of its sessions replaced. */
export function withSessions(store: Store, replaced: Partial<Store["sessions"]>): Store {
  return withCalls(store, { sessions: withCalls(store.sessions, replaced) });
}
