import type { GroupId } from "../../../domain/group-id.ts";
import type { BoundedLog } from "../../../lib/bounded-log.ts";
import type { CancelSignal } from "../../../lib/cancellation.ts";
import { pause } from "../../../lib/pause.ts";
import { perKey } from "../../../lib/per-key.ts";
import type { Connected } from "../connected.ts";
import { ownerNow } from "../connected.ts";
import type { Session } from "../session.ts";
import type { SessionsParts } from "../session-parts.ts";
import { createSessionLog } from "./session-log.ts";
import { StoreTurns, storeTurnsMax } from "./store-turns.ts";

/** Maximum number of sessions of a group that {@link LaterReads.readAll} reads at once: at least one turn is left for a session that a hint names. */
const readersMax = storeTurnsMax - 1;

export interface LaterReadsParts
  extends Pick<SessionsParts, "clock" | "limits" | "logger" | "store" | "isShared" | "nodeId"> {
  readonly signal: CancelSignal;
  /** The connection of a session at this node. */
  readonly find: (session: Session) => Connected | undefined;
  /** Whether the index of the connection's group rolls back. */
  readonly isStopped: (known: Connected) => boolean;
  /** Ends a session whose filters have all been removed. */
  readonly end: (known: Connected) => Promise<void>;
  /** Removes the connection, and disconnects its session. */
  readonly release: (known: Connected) => void;
  /** Lets the shares of a group take back the events of ended sessions. */
  readonly checkReturned: (groupId: GroupId) => void;
}

/** The reads of a group's sessions for {@link LaterReads.readAll}. */
interface Round {
  /** Sessions whose read has not begun. */
  readonly unread: Set<Session>;
  readers: number;
}

/** Reads the rows of connected sessions again, after a rollback or a change by another node. */
export class LaterReads {
  readonly #parts: LaterReadsParts;
  readonly #log: BoundedLog;
  readonly #turns = new StoreTurns();
  readonly #roundOf = perKey<GroupId, Round>(() => ({ unread: new Set(), readers: 0 }));

  constructor(parts: LaterReadsParts) {
    this.#parts = parts;
    this.#log = createSessionLog(parts);
  }

  /** As {@link readUntilDone}, for many sessions. Reads a session that still waits for an earlier call once for both calls. */
  readAll(sessions: Iterable<Session>): void {
    for (const session of sessions) {
      const known = this.#parts.find(session);
      if (known === undefined) continue;
      const round = this.#roundOf(known.group.id);
      round.unread.add(session);
      if (round.readers < readersMax) void this.#readUnread(round);
    }
  }

  async #readUnread(round: Round): Promise<void> {
    round.readers += 1;
    for (const session of round.unread) {
      round.unread.delete(session);
      await this.readUntilDone(session);
    }
    round.readers -= 1;
  }

  /** Retries until the row is read, the connection has ended or the broker stops. Never rejects. */
  async readUntilDone(session: Session): Promise<void> {
    const { clock, limits, signal, find } = this.#parts;
    for (let known = find(session); known !== undefined && !signal.aborted; known = find(session)) {
      try {
        const read = async (): Promise<void> => {
          if (find(session) !== undefined) await this.read(session);
        };
        await this.#turns.run(known.group.id, read, signal);
        return;
      } catch (error) {
        this.#log.warn("session not read again", { sessionId: session.id, error });
        await pause(clock, limits.retryDelayMsMin, signal);
      }
    }
  }

  /** Continues a session from its row; ends the connection if another node has taken the session. @throws what the store throws. */
  async read(session: Session): Promise<void> {
    const { store, isShared, find, isStopped } = this.#parts;
    const group = find(session)?.group;
    const { generation, version: indexVersion } = group?.progress ?? {};
    const { version } = session.filterSet;
    const row = await store.sessions.findSession(session.id);
    const hasRolledBack = isShared && (await group?.findGeneration()) !== generation;
    const known = find(session);
    // If the filters changed or the index rolled back meanwhile, the row may be older: read it again.
    if (session.filterSet.version !== version || group?.progress.version !== indexVersion) return this.read(session);
    if (known === undefined || (row?.session.epoch === session.key.epoch && !session.isStopped)) return;
    const isOwn =
      row !== undefined && row.session.detachedAt === undefined && row.session.owner === ownerNow(this.#parts);
    if (!isOwn) {
      known.peer.ended("taken-over");
      this.#parts.release(known);
      if (session.memberships.hasJoined) this.#parts.checkReturned(known.group.id);
    } else if (known.protocol === "STOMP" && session.isStored && row.filters.length === 0)
      // Another node has carried out unSubscribe. If the session is not stored, its row never has filters, which says nothing.
      void this.#end(known); // Not awaited: the end needs the lock of the session's name, which the caller may hold.
    else if (!session.isStopped && !hasRolledBack) session.adopt(row);
    else if (!isStopped(known)) {
      session.restart(row);
      session.readOn();
    }
  }

  /** Never rejects: after a failure, the pending end of the connection ends the session. */
  async #end(known: Connected): Promise<void> {
    try {
      await this.#parts.end(known);
    } catch (error) {
      this.#log.warn("session not ended at once, trying again", { sessionId: known.session.id, error });
    }
  }
}
