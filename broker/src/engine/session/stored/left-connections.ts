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

export interface LeftConnectionsParts extends OwnRowsParts {
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

/** The will and the expiry of a session whose connection has left. */
export interface ConnectionEnd {
  readonly will: WillRequest | undefined;
  readonly expiryMs: number;
}

/** Connections that have left and whose ends are not yet in the store. */
export class LeftConnections {
  readonly #parts: LeftConnectionsParts;
  /** Each with the end to write; undefined if only the last state of its session is to be written. */
  readonly #all = new Map<Connected, ConnectionEnd | undefined>();
  /** The ends to write, by session name. */
  readonly #pending = new Map<string, { readonly left: Connected; readonly end: ConnectionEnd }>();
  /** Ends of connections, and of sessions, that wait for their turns or are being written. */
  readonly #ending = new Set<Promise<unknown>>();
  readonly #log: BoundedLog;
  readonly #storeTurns = new StoreTurns();
  readonly #sessionTurns = new StoreTurns();
  #isStopping = false;

  constructor(parts: LeftConnectionsParts) {
    this.#parts = parts;
    this.#log = createSessionLog(parts);
  }

  get all(): Iterable<Connected> {
    return this.#all.keys();
  }

  /**
   * Call it when the node stops, before its connections end. From then on, if the row already has a connection's will and expiry, this node writes only
   * the last state of the session: detaching thousands of sessions one by one takes longer than a stop may. One statement detaches them all at the next start,
   * or at another node.
   */
  beginStop(): void {
    this.#isStopping = true;
  }

  /** Writes the end in the next turn of the name, or earlier if {@link write} is called. */
  add(left: Connected, end: ConnectionEnd): void {
    const { name } = left;
    this.#all.set(left, end);
    this.#pending.set(name, { left, end });
    void this.track(this.#parts.locks.run(name, () => this.write(name)));
  }

  /** Ends a session in a turn of its name. @throws what `end` throws. */
  async end({ name, group }: Connected, end: () => Promise<void>): Promise<void> {
    const { locks, signal } = this.#parts;
    await this.track(locks.run(name, () => this.#sessionTurns.run(group.id, end, signal)));
  }

  /** Lets {@link settled} wait for the end of a connection or session. @throws what `end` throws. */
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

  /** Writes the end of the connection that left, if there is one. Call it in a turn of the name. */
  async write(name: string): Promise<void> {
    const pending = this.#pending.get(name);
    this.#pending.delete(name);
    if (pending !== undefined) await this.detach(pending.left, pending.end);
  }

  /**
   * Drops the end of a connection whose session another connection has claimed: the claim settles the will. Call it in a turn of the name: then no other end of
   * that name is being written.
   */
  drop(name: string): void {
    const pending = this.#pending.get(name);
    if (pending === undefined) return;
    this.#pending.delete(name);
    this.#all.delete(pending.left);
  }

  /** Resolves when every end is written, or when `signal` aborts; then warns of ends whose will or expiry the rows lack. */
  async settled(signal: CancelSignal): Promise<void> {
    await untilAborted(this.#allEnded(), signal);
    const count = [...this.#all].filter(([left, end]) => end !== undefined && !isKnown(left, end)).length;
    if (count === 0) return;
    const effect =
      "wills of clients that disconnected normally may be published, and sessions keep the expiry of their CONNECT";
    this.#parts.logger.warn("ends of connections not written before the stop", { count, effect });
  }

  async #allEnded(): Promise<void> {
    while (this.#ending.size > 0) await Promise.allSettled(this.#ending); // A session's end that fails adds the end of its connection.
  }

  /**
   * Removes the session of a connection that has left, and drops the connection's pending end, which would keep the session. Call it in a turn of the name.
   * @throws what the store throws.
   */
  async remove(left: Connected): Promise<void> {
    this.drop(left.name);
    await changeOwnRow(this.#parts, left, (key) => this.#parts.store.sessions.removeSession(key));
    this.#parts.checkReturned(left.group.id);
  }

  /** Writes the last state of a session that another connection continues. A rollback waits for the write, or prevents it. @throws what the store throws. */
  async writeLast(left: Connected): Promise<void> {
    const { group, session, lingering } = left;
    const isNew = !this.#all.has(left); // Otherwise its end is pending, and removes it from the set later.
    if (isNew) this.#all.set(left, undefined);
    try {
      await lingering.ended();
      const write = async (): Promise<void> => {
        if (session.isStored && !session.isStopped) await this.#parts.writers.of(group.id).writeLast(session);
      };
      await this.#storeTurns.run(group.id, () => group.changes.shared(write), this.#parts.signal);
    } finally {
      if (isNew) this.#all.delete(left);
    }
  }

  /** Retries until the end is written or the broker stops. Never rejects. */
  async detach(left: Connected, connectionEnd: ConnectionEnd): Promise<void> {
    const { will, expiryMs } = connectionEnd;
    const { group, session, lingering } = left;
    const { store, clock, limits, signal, sweeper, room, times, writers, isShared, checkReturned } = this.#parts;
    let isLeftToOthers = false;
    let former: SessionKey | undefined;
    const write = async (): Promise<void> => {
      if (!session.isStopped) await writers.of(group.id).writeLast(session);
      // The statement that detaches all sessions would keep a stream that has lost its filters, which only another node can have removed.
      isLeftToOthers = this.#isStopping && isKnown(left, connectionEnd) && (left.protocol !== "STOMP" || !isShared);
      if (isLeftToOthers) return;
      await times.advance(group.id);
      const toStored = (ms: number): number => times.durationFromNow(group.id, ms);
      const willDelayMs = toStored(will?.delayMs ?? 0);
      const end = { will: will && encodeWill(will), willDelayMs, expiryMs: toStored(expiryMs) };
      let isRemoved = false;
      former = await changeOwnRow(this.#parts, left, (key, row) => {
        // Another node has removed all filters of the stream, and leaves its end to this node.
        isRemoved = left.protocol === "STOMP" && row?.filters.length === 0;
        return isRemoved ? store.sessions.removeSession(key) : store.sessions.detachSession(key, end);
      });
      if (former !== undefined && !isRemoved) room.added(group.id, 1);
    };
    await lingering.ended();
    if (!session.isStored && !isShared) {
      // The store has failed to begin the row that the end waited for.
      this.#all.delete(left);
      if (will !== undefined) void sweeper.publishUnstored(left, will);
      return;
    }
    while (!signal.aborted) {
      try {
        await this.#storeTurns.run(group.id, () => group.changes.shared(write), signal);
        break;
      } catch (error) {
        if (signal.aborted) break; // The broker has given up the end, warned of it if need be, and may have stopped the store.
        this.#log.warn("end of a connection not written", { sessionId: session.id, error });
        await pause(clock, limits.retryDelayMsMin, signal);
      }
    }
    this.#all.delete(left);
    if (isLeftToOthers) return;
    checkReturned(group.id);
    const key = { id: session.id, epoch: (former ?? session.key).epoch + 1 };
    const delayMs = Math.min(expiryMs, will === undefined ? expiryMs : will.delayMs);
    sweeper.checkAfter(group.id, { key, delayMs });
  }
}

/** Whether the row already has the will and the expiry, so that whoever detaches the session later writes the same end. */
function isKnown(left: Connected, { will, expiryMs }: ConnectionEnd): boolean {
  return will === left.will && expiryMs === left.expiryMs;
}
