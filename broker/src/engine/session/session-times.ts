import type { GroupId } from "../../domain/group-id.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SessionKey, SessionStore } from "../../ports/session-store.ts";

export interface SessionTimesParts {
  readonly store: {
    readonly sessions: Pick<SessionStore, "advanceSessionTime" | "detachLost" | "listDueSessions" | "countSessions">;
  };
  readonly clock: Clock;
  /** Whether this node keeps the time of a group: the one that writes its index. */
  readonly isKeeper: (groupId: GroupId) => boolean;
  /** Whether other nodes may own sessions. Without them, the connected sessions have no owner and are this node's. */
  readonly isShared: boolean;
}

/** Sessions that one look sees to. */
const pageMax = 100;

/** Has the session time of groups go on, by the monotonic clock: nobody can set it. */
export class SessionTimes {
  readonly #parts: SessionTimesParts;
  /** Up to when the time of each group was told to the store. */
  readonly #toldAt = new Map<GroupId, number>();

  constructor(parts: SessionTimesParts) {
    this.#parts = parts;
  }

  /** Brings the group's time up to now, where this node keeps it. */
  async advance(groupId: GroupId): Promise<void> {
    const { store, clock, isKeeper } = this.#parts;
    const now = clock.monotonic();
    if (!isKeeper(groupId)) {
      this.#toldAt.delete(groupId);
      return;
    }
    const toldAt = this.#toldAt.get(groupId);
    this.#toldAt.set(groupId, now);
    const elapsedMs = Math.floor(now - (toldAt ?? now));
    if (elapsedMs === 0) {
      this.#toldAt.set(groupId, toldAt ?? now);
      return;
    }
    await store.sessions.advanceSessionTime(groupId, elapsedMs);
  }

  /** Sessions that something is due of; none where another node sees to them. */
  async findDue(groupId: GroupId): Promise<readonly SessionKey[]> {
    const { store, isKeeper, isShared } = this.#parts;
    // A broker without sessions writes nothing while it is idle.
    if (!isKeeper(groupId) || (await store.sessions.countSessions()) === 0) return [];
    if (isShared) await store.sessions.detachLost(groupId);
    await this.advance(groupId);
    return store.sessions.listDueSessions(groupId, pageMax);
  }
}
