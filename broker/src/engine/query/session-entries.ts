import type { Position } from "../../domain/position.ts";
import { parseSharedFilter } from "../../domain/shared-filter.ts";
import { type ListedProtocol, nothingFailed, type Subscription } from "../../domain/subscription.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { SessionId, SessionWithFilters, StoredFilter, StoredSession } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import type { ConnectedSession } from "../connected-session.ts";
import type { FilterCursor } from "./pending-counts.ts";
import { SharePlaces } from "./share-places.ts";

/** Maximum number of sessions per read; each has up to 1,000 filters. */
const sessionsReadMax = 50;

export interface SessionEntriesOptions {
  readonly store: Pick<Store, "sessions" | "shares">;
  readonly slices: TimeSlices;
  /** Sessions that are connected to this node; they are newer than their rows in the store. */
  readonly sessions: {
    listConnected(): readonly ConnectedSession[];
    isSuspended(session: StoredSession): boolean;
  };
}

/** A filter of a session as a subscription, with the cursors from which to count its events. */
export interface SessionEntry {
  readonly subscription: Subscription;
  /** The filter with its cursor: the events after it are waiting. */
  readonly pending: FilterCursor;
  /** The filter with the position after which it gets events. */
  readonly start: FilterCursor;
}

/** Every filter of every session that is connected to this node or in the store. Leaves out tails, which end with their requests. */
export async function* sessionEntriesOf(options: SessionEntriesOptions): AsyncIterable<SessionEntry> {
  const { store, sessions } = options;
  const connected = new Map(sessions.listConnected().map((known) => [known.session.id, known]));
  for (let after: SessionId | undefined; ; ) {
    const page = await store.sessions.listSessions({ after, limit: sessionsReadMax });
    const known = page.map((stored) => {
      const one = connected.get(stored.session.id);
      connected.delete(stored.session.id);
      return one?.session.epoch === stored.session.epoch ? one : toKnown(stored, options);
    });
    yield* entriesOfAll(known, options);
    after = page.at(-1)?.session.id;
    if (page.length < sessionsReadMax) break;
  }
  const unstored = [...connected.values()].filter(({ isStored }) => !isStored);
  yield* entriesOfAll(unstored, options);
}

async function* entriesOfAll(all: readonly Known[], { store, slices }: SessionEntriesOptions) {
  const places = await SharePlaces.read(store.shares, all);
  for (const known of all) {
    yield* entriesOf(known, places);
    await slices.pause();
  }
}

type Known = Pick<ConnectedSession, "session" | "filters" | "isSuspended" | "notifiedAt">;

function toKnown({ session, filters }: SessionWithFilters, { sessions }: SessionEntriesOptions): Known {
  return {
    session,
    filters,
    isSuspended: session.protocol === "STOMP" && sessions.isSuspended(session),
    notifiedAt: () => undefined, // Only the node of its connection knows.
  };
}

function entriesOf(known: Known, places: SharePlaces): readonly SessionEntry[] {
  const { session, filters, isSuspended } = known;
  const { protocol } = session;
  if (protocol === "Tail") return [];
  return filters.map((filter) => {
    const notifiedAt = known.notifiedAt(filter.filter) ?? session.createdAt;
    return toEntry({ session, isSuspended, protocol, cursor: places.cursorOf(session, filter), notifiedAt }, filter);
  });
}

interface Listed extends Omit<Known, "filters" | "notifiedAt"> {
  readonly protocol: ListedProtocol;
  readonly cursor: Position;
  readonly notifiedAt: number;
}

function toEntry(
  { session, isSuspended, protocol, cursor, notifiedAt }: Listed,
  { id, filter, startsAfter }: StoredFilter,
): SessionEntry {
  const { groupId, createdAt, owner, epoch } = session;
  const subscription: Subscription = {
    id,
    groupId,
    filter,
    delivery: { kind: "session", protocol, sessionId: session.id },
    state: isSuspended ? "suspended" : "active",
    cursor,
    notifiedCount: 0,
    notifiedAt,
    ...nothingFailed,
    createdAt,
    owner,
    epoch,
  };
  const counted = { groupId, filter: parseSharedFilter(filter)?.filter ?? filter };
  return { subscription, pending: { ...counted, cursor }, start: { ...counted, cursor: startsAfter } };
}
