import { withCalls } from "../../lib/with-calls.ts";
import type { Store } from "../../ports/store.ts";

/** The store, with some calls of its sessions and of their shares replaced. */
export function withSessionCalls(store: Store, replaced: Partial<Store["sessions"] & Store["shares"]>): Store {
  const { sessions, shares } = store;
  return withCalls(store, { sessions: withCalls(sessions, replaced), shares: withCalls(shares, replaced) });
}
