import type { GroupId } from "../../../domain/group-id.ts";
import type { BoundedLog } from "../../../lib/bounded-log.ts";
import type { CancelSignal } from "../../../lib/cancellation.ts";
import type { KeyedMutex } from "../../../lib/keyed-mutex.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { SessionKey, SessionStore } from "../../../ports/session-store.ts";
import type { WillRequest } from "../../broker.ts";
import type { EngineLimits } from "../../limits.ts";
import type { Connected } from "../connected.ts";
import { changeOwnRow, type OwnRowsParts } from "./own-rows.ts";
import { encodeWill } from "./session-codec.ts";
import { createSessionLog } from "./session-log.ts";
import { StoreTurns } from "./store-turns.ts";
import type { SessionRoom } from "./session-room.ts";
import type { SessionSweeper } from "./session-sweeper.ts";
import type { SessionTimes } from "./session-times.ts";
import type { SessionWriters } from "./session-writer.ts";

export interface EndedConnectionsParts extends OwnRowsParts {
  readonly store: { readonly sessions: Pick<SessionStore, "detachSession" | "findSession" | "removeSession"> };
  readonly clock: Clock;
  readonly limits: Pick<EngineLimits, "retryDelayMsMin">;
  readonly logger: Logger;
  /** The lock of each session name. */
  readonly locks: KeyedMutex<string>;
  readonly times: SessionTimes;
  readonly room: SessionRoom;
  readonly sweeper: SessionSweeper;
  readonly writers: Pick<SessionWriters, "of">;
  readonly signal: CancelSignal;
  /** Whether other nodes may change the sessions of this node. */
  readonly isShared: boolean;
  /** Called when the end of a connection may have returned events to shares of the group. */
  readonly checkReturned: (groupId: GroupId) => void;
}

/** The will and the expiry to store with a session when its connection has ended. */
export interface ConnectionEnd {
  readonly will: WillRequest | undefined;
  readonly expiryMs: number;
}

/** Connections that have ended, until the store has their ends. */
export class EndedConnections {
  readonly #parts: EndedConnectionsParts;
  /** Each with the end to write; undefined if this node must write only the last state of the session. */
  readonly #all = new Map<Connected, ConnectionEnd | undefined>();
  /** The ends to write, by session name. */
  readonly #pending = new Map<string, { readonly known: Connected; readonly end: ConnectionEnd }>();
  /** Tasks that end connections or sessions, waiting or running. */
  readonly #ending = new Set<Promise<unknown>>();
  readonly #log: BoundedLog;
  readonly #storeTurns = new StoreTurns();
  readonly #sessionTurns = new StoreTurns();
  #isStopping = false;

  constructor(parts: EndedConnectionsParts) {
    this.#parts = parts;
    this.#log = createSessionLog(parts);
  }

  get all(): Iterable<Connected> {
    return this.#all.keys();
  }

  /**
   * Call it when the node stops, before its connections end. From then on, this node writes only the last state of a session whose row already has the will
   * and the expiry. It does not detach the session: detaching thousands one by one would take longer than a stop may. A few statements detach them all at the
   * next start, or on another node.
   */
  beginStop(): void {
    this.#isStopping = true;
  }

  /** Writes the end under the lock of the session's name, or earlier if {@link write} is called. Resolves once it is written. Never rejects. */
  add(known: Connected, end: ConnectionEnd): Promise<void> {
    const { name } = known;
    this.#all.set(known, end);
    this.#pending.set(name, { known, end });
    return this.track(this.#parts.locks.run(name, () => this.write(name)));
  }

  /** Ends a session under the lock of its name. @throws what `end` throws. */
  async end({ name, group }: Connected, end: () => Promise<void>): Promise<void> {
    const { locks, signal } = this.#parts;
    await this.track(locks.run(name, () => this.#sessionTurns.run(group.id, end, signal)));
  }

  /** Lets {@link settled} wait for a task that ends a connection or a session. @throws what `end` throws. */
  async track(end: Promise<unknown>): Promise<void> {
    this.#ending.add(end);
    try {
      await end;
    } finally {
      this.#ending.delete(end);
    }
  }

  has(name: string): boolean {
    return this.#pending.has(name);
  }

  /** Writes the pending end of the name, if there is one. The caller must hold the name's lock. */
  async write(name: string): Promise<void> {
    const pending = this.#pending.get(name);
    this.#pending.delete(name);
    if (pending !== undefined) await this.detach(pending.known, pending.end);
  }

  /**
   * Drops the pending end of the name, if there is one: either the session is removed, or another connection has claimed it and the claim settles the will. The
   * caller must hold the name's lock: then no end of that name is being written.
   */
  drop(name: string): void {
    const pending = this.#pending.get(name);
    if (pending === undefined) return;
    this.#pending.delete(name);
    this.#all.delete(pending.known);
  }

  /** Resolves when every end is written or `signal` aborts. Warns if the rows lack the will or the expiry of some ends. */
  async settled(signal: CancelSignal): Promise<void> {
    await untilAborted(this.#allEnded(), signal);
    const count = [...this.#all].filter(([known, end]) => end !== undefined && !isInRow(known, end)).length;
    if (count === 0) return;
    const effect =
      "wills of clients that disconnected normally may be published, and sessions keep the expiry of their CONNECT";
    this.#parts.logger.warn("ends of connections not written before the stop", { count, effect });
  }

  async #allEnded(): Promise<void> {
    while (this.#ending.size > 0) await Promise.allSettled(this.#ending); // If ending a session fails, the end of its connection is added.
  }

  /**
   * Removes the session of a connection that has ended. Drops the pending end, which would keep the session. The caller must hold the lock of its name.
   * @throws what the store throws.
   */
  async remove(known: Connected): Promise<void> {
    this.drop(known.name);
    await changeOwnRow(this.#parts, known, (key) => this.#parts.store.sessions.removeSession(key));
    this.#checkReturned(known);
  }

  /** Writes the last state of a session that another connection continues. A rollback waits for the write, or prevents it. @throws what the store throws. */
  async writeLast(known: Connected): Promise<void> {
    const { group, session, lingering } = known;
    const isNew = !this.#all.has(known); // Otherwise its end is pending; whoever writes the end deletes the entry.
    if (isNew) this.#all.set(known, undefined);
    try {
      await lingering.ended();
      const write = async (): Promise<void> => {
        if (session.isStored && !session.isStopped) await this.#parts.writers.of(group.id).writeLast(session);
      };
      await this.#storeTurns.run(group.id, () => group.changes.shared(write), this.#parts.signal);
    } finally {
      if (isNew) this.#all.delete(known);
    }
  }

  /** Retries until the end is written or the broker stops. Never rejects. */
  async detach(known: Connected, connectionEnd: ConnectionEnd): Promise<void> {
    const { will, expiryMs } = connectionEnd;
    const { group, session, lingering } = known;
    const { store, clock, limits, signal, sweeper, room, times, writers, isShared } = this.#parts;
    let isDeferred = false;
    let former: SessionKey | undefined;
    const write = async (): Promise<void> => {
      if (!session.isStopped) await writers.of(group.id).writeLast(session);
      // If another node has removed all filters of a stream, this node must remove the session. The statements that detach all sessions would keep it.
      isDeferred = this.#isStopping && isInRow(known, connectionEnd) && (known.protocol !== "STOMP" || !isShared);
      if (isDeferred) return;
      await times.advance(group.id);
      const toStoredMs = (ms: number): number => times.durationFromNow(group.id, ms);
      const willDelayMs = toStoredMs(will?.delayMs ?? 0);
      const end = { will: will && encodeWill(will), willDelayMs, expiryMs: toStoredMs(expiryMs) };
      let isRemoved = false;
      former = await changeOwnRow(this.#parts, known, (key, row) => {
        // Another node has removed all filters of the stream, and leaves it to this node to remove the session.
        isRemoved = known.protocol === "STOMP" && row?.filters.length === 0;
        return isRemoved ? store.sessions.removeSession(key) : store.sessions.detachSession(key, end);
      });
      if (former !== undefined && !isRemoved) room.added(group.id, 1);
    };
    await lingering.ended();
    if (!session.isStored && !isShared) {
      // The session has no row: the store failed to create it.
      this.#all.delete(known);
      if (will !== undefined) void sweeper.publishUnstored(known, will);
      return;
    }
    while (!signal.aborted) {
      try {
        await this.#storeTurns.run(group.id, () => group.changes.shared(write), signal);
        break;
      } catch (error) {
        if (signal.aborted) break; // The broker stops: `settled` has warned of this end if the row lacks it, and the store may be closed.
        this.#log.warn("end of a connection not written, trying again", { sessionId: session.id, error });
        await pause(clock, limits.retryDelayMsMin, signal);
      }
    }
    this.#all.delete(known);
    if (isDeferred) return;
    this.#checkReturned(known);
    const key = { id: session.id, epoch: (former ?? session.key).epoch + 1 };
    const delayMs = Math.min(expiryMs, will === undefined ? expiryMs : will.delayMs);
    sweeper.checkAfter(group.id, { key, delayMs });
  }

  /** Other sessions have no events of shares: a check reads the unacknowledged events of all members, and connections may end all the time. */
  #checkReturned({ group, session }: Connected): void {
    if (session.memberships.hasJoined) this.#parts.checkReturned(group.id);
  }
}

/** Whether the session's row already has this will and expiry. Then whoever detaches the session later writes the same end. */
function isInRow(known: Connected, { will, expiryMs }: ConnectionEnd): boolean {
  return will === known.will && expiryMs === known.expiryMs;
}
