import type { TopicFilter } from "../domain/topic-filter.ts";
import type { StoredFilter, StoredSession } from "../ports/session-store.ts";

/** The state of a connected session for the admin listing; newer than its row in the store. */
export interface ConnectedSession {
  readonly session: Pick<
    StoredSession,
    "id" | "groupId" | "protocol" | "principal" | "cursor" | "createdAt" | "owner" | "epoch"
  >;
  readonly filters: readonly StoredFilter[];
  /** Whether the store has the session too, with its filters. */
  readonly isStored: boolean;
  /** Whether the session gets no events, because its client rejected one too often. */
  readonly isSuspended: boolean;
  /** When the client got the latest event of a filter, milliseconds since the epoch; undefined if it got none over this connection. */
  notifiedAt(filter: TopicFilter): number | undefined;
}
