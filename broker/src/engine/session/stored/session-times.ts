import type { GroupId } from "../../../domain/group-id.ts";
import { perKey } from "../../../lib/per-key.ts";
import { SingleFlight } from "../../../lib/single-flight.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { SessionKey, SessionStore } from "../../../ports/session-store.ts";

export interface SessionTimesParts {
  readonly store: {
    readonly sessions: Pick<
      SessionStore,
      "findSessionTime" | "advanceSessionTime" | "detachLost" | "listDueSessions" | "listDetached"
    >;
  };
  readonly clock: Clock;
  /** Whether this node keeps the time of a group: the node that writes the group's index does. */
  readonly isKeeper: (groupId: GroupId) => boolean;
  /** Whether other nodes may own sessions. If not, the connected sessions have no owner and are this node's. */
  readonly isShared: boolean;
  /** Whether a group has publish keys. They expire by its session time too. */
  readonly hasKeys: (groupId: GroupId) => boolean;
}

/**
 * How late the stored time may be at a node that does not keep it, in milliseconds: the keeper writes the time about once a second, and does not count more
 * than this at once.
 */
const lateMsMax = 2_000;

/** Maximum number of due sessions per read. */
export const dueSessionsMax = 100;

/**
 * Advances the session time of groups by the monotonic clock, which nobody can set. The time advances while a session has no connection or a publish key is
 * kept. Otherwise it stops, so that an idle broker without such sessions and keys writes nothing.
 */
export class SessionTimes {
  readonly #parts: SessionTimesParts;
  /** The moment up to which each group's time is counted, by the monotonic clock. */
  readonly #writtenAt = new Map<GroupId, number>();
  readonly #advances = perKey((groupId: GroupId) => new SingleFlight(() => this.#advance(groupId)));

  constructor(parts: SessionTimesParts) {
    this.#parts = parts;
  }

  /** Whether this node keeps the time of a group, and so sweeps its sessions without a connection. */
  isKeeper(groupId: GroupId): boolean {
    return this.#parts.isKeeper(groupId);
  }

  /**
   * The length to store for a duration that begins now. Nothing may end early ([MQTT-3.1.3-9]), so at a node that does not keep the time, the duration ends up
   * to two seconds late. Zero stays zero.
   */
  durationFromNow(groupId: GroupId, ms: number): number {
    return ms === 0 || this.isKeeper(groupId) ? ms : ms + lateMsMax;
  }

  /** The length to store for a duration that begins when a connection ends. Another node may write that end, and it may be one that does not keep the time. */
  durationFromEnd(ms: number): number {
    return ms === 0 || !this.#parts.isShared ? ms : ms + lateMsMax;
  }

  /** The group's time, as of its last advance. */
  find(groupId: GroupId): Promise<number> {
    return this.#parts.store.sessions.findSessionTime(groupId);
  }

  /**
   * If this node keeps the group's time, brings it up to now. If nodes share the store, adds at most {@link lateMsMax}: other nodes may have counted from the
   * late time. Callers share an advance that has not begun: one that is under way has counted only up to its own begin.
   */
  advance(groupId: GroupId): Promise<void> {
    return this.#advances(groupId).read();
  }

  async #advance(groupId: GroupId): Promise<void> {
    const { store, clock, isKeeper, isShared } = this.#parts;
    const now = clock.monotonic();
    if (!isKeeper(groupId)) {
      this.#writtenAt.delete(groupId);
      return;
    }
    const writtenAt = this.#writtenAt.get(groupId) ?? now;
    const elapsedMs = Math.floor(now - writtenAt);
    this.#writtenAt.set(groupId, writtenAt + elapsedMs); // The rest of a millisecond counts with the next advance.
    const countedMs = isShared ? Math.min(elapsedMs, lateMsMax) : elapsedMs;
    if (countedMs <= 0) return;
    try {
      await store.sessions.advanceSessionTime(groupId, countedMs);
    } finally {
      // Another node may have read the time just before this write took effect. So this write and the next together must not add more than
      // `lateMsMax`, for which that node allows.
      const since = clock.monotonic() - (lateMsMax - countedMs);
      if (isShared && isKeeper(groupId)) this.#writtenAt.set(groupId, Math.max(writtenAt + elapsedMs, since));
    }
  }

  /** Sessions whose end or will is due; none if another node sweeps them. */
  async findDue(groupId: GroupId): Promise<readonly SessionKey[]> {
    const { store, clock, isKeeper, isShared, hasKeys } = this.#parts;
    if (!isKeeper(groupId)) {
      this.#writtenAt.delete(groupId); // Once this node keeps the time again, it must not add what another node has added meanwhile.
      return [];
    }
    if (isShared) await store.sessions.detachLost(groupId);
    if ((await store.sessions.listDetached(groupId, 1)).length === 0) {
      if (!hasKeys(groupId)) this.#writtenAt.set(groupId, clock.monotonic());
      // Another node that detaches a session counts from the stored time.
      else if (isShared) await this.advance(groupId);
      return [];
    }
    await this.advance(groupId);
    return store.sessions.listDueSessions(groupId, dueSessionsMax);
  }
}
