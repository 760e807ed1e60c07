import type { GroupId } from "../../../domain/group-id.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { SessionKey, SessionStore } from "../../../ports/session-store.ts";
import type { EngineLimits } from "../../limits.ts";

/** Maximum number of sessions that one sweep ends to make room. If this many sessions are above the limit, no new one begins. */
const endedPerSweepMax = 100;

/** Wait between two counts in the store, in milliseconds. Counting reads an index entry of each session. */
const countEveryMs = 60_000;

export interface SessionRoomParts {
  readonly store: { readonly sessions: Pick<SessionStore, "listDetached" | "countDetached"> };
  readonly clock: Clock;
  readonly limits: Pick<EngineLimits, "sessionsMax">;
}

/**
 * Keeps the number of disconnected sessions of each group below its limit: the sweep ends those that have been disconnected longest. A client that
 * connects does not wait for the sweep. If clients are faster than the sweep, no new session begins.
 */
export class SessionRoom {
  readonly #parts: SessionRoomParts;
  /** This node's estimate between two counts in the store. */
  readonly #counts = new Map<GroupId, number>();
  readonly #countedAt = new Map<GroupId, number>();

  constructor(parts: SessionRoomParts) {
    this.#parts = parts;
  }

  /** Whether a session may begin. */
  mayBegin(groupId: GroupId): boolean {
    return this.#excessOf(groupId) < endedPerSweepMax;
  }

  /** Whether a row may keep a due will: these rows must not displace the sessions of clients that are away, so they have half of the room. */
  mayKeepWill(groupId: GroupId): boolean {
    return (this.#counts.get(groupId) ?? 0) < this.#parts.limits.sessionsMax / 2;
  }

  /** Adds sessions that lost their connections; a negative count is for sessions that got a connection or ended. */
  added(groupId: GroupId, count: number): void {
    this.#counts.set(groupId, (this.#counts.get(groupId) ?? 0) + count);
  }

  /** Sessions to end, at most {@link endedPerSweepMax}. @throws what the store throws. */
  async findExcess(groupId: GroupId): Promise<readonly SessionKey[]> {
    const excess = Math.min(this.#excessOf(groupId), endedPerSweepMax);
    return excess <= 0 ? [] : this.#parts.store.sessions.listDetached(groupId, excess);
  }

  #excessOf(groupId: GroupId): number {
    return (this.#counts.get(groupId) ?? 0) - this.#parts.limits.sessionsMax;
  }

  /** Counts in the store once a minute. Call it at every node: one that ends no sessions does not notice their ends. @throws what the store throws. */
  async refresh(groupId: GroupId): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock.monotonic();
    if (now - (this.#countedAt.get(groupId) ?? Number.NEGATIVE_INFINITY) < countEveryMs) return;
    this.#counts.set(groupId, await store.sessions.countDetached(groupId));
    this.#countedAt.set(groupId, now);
  }
}
