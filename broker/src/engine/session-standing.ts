import type { StoredFilter, StoredSession } from "../ports/session-store.ts";

/** A connected session as the listing shows it; ahead of its row in the store. */
export interface SessionStanding {
  readonly session: Pick<
    StoredSession,
    "id" | "groupId" | "protocol" | "principal" | "cursor" | "createdAt" | "owner" | "epoch"
  >;
  readonly filters: readonly StoredFilter[];
  /** Whether the store has it too, with its filters. */
  readonly isStored: boolean;
  /** Whether it is given nothing, because its client rejected an event too often. */
  readonly isSuspended: boolean;
}
