import type { GroupId } from "../../domain/group-id.ts";
import { maxOf, type Position } from "../../domain/position.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { StoredFilter, StoredSession } from "../../ports/session-store.ts";
import type { ShareStore } from "../../ports/share-store.ts";

interface Known {
  readonly session: Pick<StoredSession, "groupId" | "cursor">;
  readonly filters: readonly StoredFilter[];
}

/** Cursors of the shares to which sessions belong. A session's own cursor does not count here: other members of the share get its events too. */
export class SharePlaces {
  readonly #byGroup = new Map<GroupId, ReadonlyMap<TopicFilter, Position>>();

  static async read(store: Pick<ShareStore, "findShareCursors">, sessions: readonly Known[]): Promise<SharePlaces> {
    const named = new Map<GroupId, Set<TopicFilter>>();
    for (const { session, filters } of sessions) {
      const ofGroup = named.get(session.groupId) ?? new Set();
      named.set(session.groupId, ofGroup);
      for (const { filter } of filters) if (isShared(filter)) ofGroup.add(filter);
    }
    const places = new SharePlaces();
    for (const [groupId, filters] of named) {
      if (filters.size > 0) places.#byGroup.set(groupId, await store.findShareCursors(groupId, [...filters]));
    }
    return places;
  }

  /** The cursor of a session's filter: every event up to it is acknowledged, or did not have to go to the session. */
  cursorOf({ groupId, cursor }: Known["session"], { filter, startsAfter }: StoredFilter): Position {
    return this.#byGroup.get(groupId)?.get(filter) ?? maxOf(cursor, startsAfter);
  }
}
