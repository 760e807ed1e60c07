import type { GroupId } from "../../../domain/group-id.ts";
import type { NodeId } from "../../../domain/node.ts";
import type { BoundedLog } from "../../../lib/bounded-log.ts";
import { Cancellation, type CancelSignal } from "../../../lib/cancellation.ts";
import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { pause } from "../../../lib/pause.ts";
import { SetMap } from "../../../lib/set-map.ts";
import type { Clock } from "../../../ports/clock.ts";
import { endsAt, type SessionId, type SessionKey, type StoredSession } from "../../../ports/session-store.ts";
import type { Store } from "../../../ports/store.ts";
import type { WillRequest } from "../../broker.ts";
import { type Connected, willBytes } from "../connected.ts";
import { decodeWill, type StoredWill } from "./session-codec.ts";
import { createSessionLog } from "./session-log.ts";
import type { SessionRoom } from "./session-room.ts";
import { dueSessionsMax, type SessionTimes } from "./session-times.ts";
import { WillTries } from "./will-tries.ts";
import type { WillName, Wills } from "./wills.ts";

export interface SessionSweeperParts {
  readonly store: Pick<Store, "sessions">;
  readonly times: SessionTimes;
  readonly room: SessionRoom;
  readonly wills: Wills;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly nodeId: () => NodeId | undefined;
  /** Whether the broker is a restored copy for inspection: see `EngineOptions`. */
  readonly isRestored?: boolean | undefined;
  readonly signal: CancelSignal;
  /** Called when a session has ended. */
  readonly onEnded: (groupId: GroupId, id: SessionId) => void;
}

/** Time between two sweeps, in milliseconds, if no due session is left. Timers check the sessions of clients that have just left this node. */
const sweepEveryMs = 1_000;

/** Longest delay that gets a timer, in milliseconds: clients that come and go must not pile up timers. The sweep finds the rest. */
const timerMsMax = 10_000;

/** Publishes the wills of sessions without a connection, and ends such sessions when they have expired. */
export class SessionSweeper {
  readonly #parts: SessionSweeperParts;
  readonly #running = new Map<GroupId, Promise<void>>();
  readonly #tries: WillTries;
  readonly #log: BoundedLog;
  readonly #first = new Map<GroupId, Promise<void>>();
  /** Sessions that this node may still have taken, by group: a call of the store failed or was refused. No other node ends a taken session. */
  readonly #mayBeTaken = new SetMap<GroupId, SessionId>();
  /** Sessions that this node settles or ends now, and so may have taken. */
  readonly #underWay = new Set<SessionId>();

  constructor(parts: SessionSweeperParts) {
    this.#parts = parts;
    this.#tries = new WillTries(parts);
    this.#log = createSessionLog(parts);
  }

  begin(groupId: GroupId): void {
    if (!this.#running.has(groupId)) this.#running.set(groupId, this.#run(groupId));
  }

  /** Resolves when the store shows the connections of an earlier process as ended. @throws what the store throws. */
  async ready(groupId: GroupId): Promise<void> {
    const known = this.#first.get(groupId);
    if (known !== undefined) return known;
    const first = this.#parts.store.sessions.detachLost(groupId);
    this.#first.set(groupId, first);
    first.catch(() => this.#first.delete(groupId));
    return first;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Checks a session that has just lost its connection, after `delayMs`. */
  checkAfter(groupId: GroupId, { key, delayMs }: { readonly key: SessionKey; readonly delayMs: number }): void {
    const { clock, signal, logger } = this.#parts;
    if (delayMs > timerMsMax || signal.aborted) return; // The sweep finds it.
    const check = (): void => {
      this.#check(groupId, key).catch((error: unknown) => logger.debug("detached session not checked", { error }));
    };
    if (delayMs <= 0) {
      check();
      return;
    }
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener("abort", cancel);
      check();
    });
    signal.addEventListener("abort", cancel, { once: true });
  }

  /** Publishes the will that a claim took from the former connection, in the background. If that fails, a sweep retries, if the store keeps the will. */
  beginWill(dueWill: StoredSession | "unstored", former: StoredSession): void {
    if (dueWill === "unstored") {
      void this.#publishUnstored(former);
      return;
    }
    const { groupId } = dueWill;
    this.#parts.room.added(groupId, 1);
    // If the session had no connection, a sweep of another node may be about to publish the will too: then this try does not free its name.
    const publish = () => this.#endTaken(groupId, dueWill, { forgetsWill: former.detachedAt === undefined });
    this.#work(groupId, dueWill, publish).catch((error: unknown) => {
      this.#parts.logger.debug("row of a will not removed yet", { error });
    });
  }

  /** Publishes the will of a former connection that the store no longer has. Never rejects. */
  async #publishUnstored(former: StoredSession): Promise<void> {
    // Leaves out the session's name: the will is due, so the return of its client must not drop it.
    const tried = { bytes: former.will?.length ?? 0, delayMs: 0 };
    const isPublished = await this.#tries.run(tried, () => this.#publishWill(former));
    if (!isPublished) this.#log.warn("will not published", { sessionId: former.id });
    // If the session had no connection, a sweep of another node may be about to publish the will too: then its name stays.
    else if (former.detachedAt === undefined) this.#forgetWill(former);
  }

  /** Whether this node settles or ends a session now. Nobody else may give the session back then: another node would publish the will too. */
  isUnderWay(id: SessionId): boolean {
    return this.#underWay.has(id);
  }

  /** Publishes the will of a session that was only in memory, in the background. Never rejects. */
  async publishUnstored({ name, session, ownedBy }: Connected, will: WillRequest): Promise<void> {
    const tried = { name, bytes: willBytes(will), delayMs: will.delayMs };
    const isPublished = await this.#tries.run(tried, () => this.#parts.wills.publish(will, ownedBy));
    if (!isPublished) this.#log.warn("will not published", { sessionId: session.id });
  }

  /** See {@link WillTries.returned}. */
  returned(name: string): void {
    this.#tries.returned(name);
  }

  /** Publishes the will of a session. Returns whether the will is settled. Never rejects: a will that cannot be read must not delay its session's end. */
  async #publishWill(session: StoredSession): Promise<boolean> {
    const { wills, logger } = this.#parts;
    const { will, principal } = session;
    if (will === undefined) return true;
    try {
      const decoded = decodeWill(will);
      return await wills.publish(decoded, principal, nameOfWill(session, decoded));
    } catch (error) {
      logger.error("will not published", { error });
      return true;
    }
  }

  /** Frees the name of a will that is settled for every node. */
  #forgetWill(session: StoredSession): void {
    const { will } = session;
    if (will === undefined) return;
    try {
      const decoded = decodeWill(will);
      void this.#parts.wills.forget(decoded, nameOfWill(session, decoded));
    } catch {
      // A will that cannot be read was never published.
    }
  }

  async #run(groupId: GroupId): Promise<void> {
    const { signal, clock, logger, times, isRestored = false } = this.#parts;
    const trouble = new ReportedTrouble(logger, "sessions not swept", "sessions swept again");
    while (!signal.aborted) {
      let restMs = sweepEveryMs;
      try {
        await this.ready(groupId);
        if (isRestored) return;
        await this.#giveBack(groupId);
        const due = await times.findDue(groupId);
        const settled = await this.#advanceUntil(groupId, allSettled(due.map((key) => this.#check(groupId, key))));
        // Thousands of clients may lose their connections at once, so do not rest after a full page, unless nothing could be settled.
        if (due.length === dueSessionsMax && settled.includes(true)) restMs = 0;
        if (await this.#makeRoom(groupId)) restMs = 0;
        trouble.done();
      } catch (error) {
        trouble.failed(error);
      }
      await pause(clock, restMs, signal);
    }
  }

  /** Advances the session time until the work has ended, since wills may wait long for their transactions, and other nodes count from the stored time. */
  async #advanceUntil<T>(groupId: GroupId, work: Promise<T>): Promise<T> {
    const { clock, times } = this.#parts;
    const ended = new Cancellation();
    const end = (): void => ended.abort();
    work.then(end, end);
    while (!ended.aborted) {
      await pause(clock, sweepEveryMs, ended);
      if (!ended.aborted) await times.advance(groupId).catch(() => {}); // The next round of the sweep reports a failure that lasts.
    }
    return work;
  }

  /** Ends sessions above the limit. Returns whether it ended some; then there may be more to end. */
  async #makeRoom(groupId: GroupId): Promise<boolean> {
    const { times, room, logger } = this.#parts;
    await room.refresh(groupId);
    const keys = times.isKeeper(groupId) ? await room.findExcess(groupId) : [];
    if (keys.length === 0) return false;
    logger.warn("too many sessions without a connection, ending the oldest", { count: keys.length });
    await this.#advanceUntil(groupId, allSettled(keys.map((key) => this.#end(groupId, key))));
    return true;
  }

  /** Returns whether a will was settled or the session has ended. */
  async #check(groupId: GroupId, key: SessionKey): Promise<boolean> {
    const { store, times } = this.#parts;
    await times.advance(groupId);
    const found = (await store.sessions.findSession(key.id))?.session;
    if (found === undefined) return this.#drop(groupId, key);
    if (found.epoch !== key.epoch || found.detachedAt === undefined) return false;
    const time = await store.sessions.findSessionTime(groupId);
    if ((endsAt(found) ?? time) <= time) return this.#end(groupId, key);
    if (found.willDueAt !== undefined && found.willDueAt <= time) return this.#settleWill(groupId, key);
    const delayMs = Math.min(found.willDueAt ?? endsAt(found) ?? 0, endsAt(found) ?? 0) - time;
    this.checkAfter(groupId, { key, delayMs });
    return false;
  }

  async #settleWill(groupId: GroupId, key: SessionKey): Promise<boolean> {
    return this.#work(groupId, key, async () => {
      const taken = await this.#take(key);
      if (taken === undefined || !(await this.#publishTaken(taken))) return false;
      const isSettled = await this.#parts.store.sessions.settleWill(taken);
      if (isSettled) this.#forgetWill(taken);
      else this.#noteTaken(groupId, key);
      return isSettled;
    });
  }

  #take(key: SessionKey): Promise<StoredSession | undefined> {
    const { store, nodeId } = this.#parts;
    return store.sessions.takeDueSession(key, nodeId());
  }

  /** Publishes the will of a session that this node has taken. If the will's fate is unknown, gives the session back, and a later sweep finds out. */
  async #publishTaken(taken: StoredSession): Promise<boolean> {
    const isSettled = await this.#publishWill(taken);
    if (!isSettled) await this.#parts.store.sessions.takeDueSession(taken, undefined);
    return isSettled;
  }

  /** Returns whether the session has ended. */
  async #end(groupId: GroupId, key: SessionKey): Promise<boolean> {
    return this.#work(groupId, key, async () => {
      const taken = await this.#take(key);
      return taken !== undefined && this.#endTaken(groupId, taken, { forgetsWill: true });
    });
  }

  async #endTaken(
    groupId: GroupId,
    taken: StoredSession,
    { forgetsWill }: { readonly forgetsWill: boolean },
  ): Promise<boolean> {
    if (!(await this.#publishTaken(taken))) return false;
    const isRemoved = await this.#remove(groupId, taken);
    // A rollback, or a caller who removed a filter, may have given the row another epoch meanwhile.
    if (!isRemoved) this.#noteTaken(groupId, taken);
    else if (forgetsWill) this.#forgetWill(taken);
    return isRemoved;
  }

  /** Runs a task that settles or ends a session, and returns its result. Returns false at once if there is another task of the session. */
  async #work(groupId: GroupId, key: SessionKey, task: () => Promise<boolean>): Promise<boolean> {
    if (this.#underWay.has(key.id)) return false;
    this.#underWay.add(key.id);
    try {
      return await task();
    } catch (error) {
      this.#noteTaken(groupId, key);
      throw error;
    } finally {
      this.#underWay.delete(key.id);
    }
  }

  #noteTaken(groupId: GroupId, { id }: SessionKey): void {
    this.#mayBeTaken.add(groupId, id);
  }

  /** Gives sessions back that this node has taken and not ended, so that a sweep finds them again. @throws what the store throws. */
  async #giveBack(groupId: GroupId): Promise<void> {
    const { store, nodeId } = this.#parts;
    const noted = [...this.#mayBeTaken.get(groupId)]; // A copy, so that a session which the loop notes again waits for the next sweep.
    for (const id of noted) {
      // Delete the note before the read: after the read, a task may take the session, fail, and note it again. That note must stay.
      this.#mayBeTaken.delete(groupId, id);
      try {
        const found = (await store.sessions.findSession(id))?.session;
        const isTaken = found?.owner !== undefined && found.owner === nodeId() && found.detachedAt !== undefined;
        if (found === undefined || !isTaken) continue;
        // A task under way may have begun before the session was taken, and may leave it taken.
        if (this.#underWay.has(id)) this.#noteTaken(groupId, found);
        else await store.sessions.takeDueSession(found, undefined);
      } catch (error) {
        this.#mayBeTaken.add(groupId, id);
        throw error;
      }
    }
  }

  /** Removes the row of a session that the store did not find. If there is a row, it is damaged, and every sweep would read it before all others. */
  async #drop(groupId: GroupId, key: SessionKey): Promise<boolean> {
    if (!(await this.#remove(groupId, key))) return false;
    const remedy = "its client subscribes again; the session's will, if it had one, is lost";
    this.#parts.logger.error("session dropped: its row in the store is damaged", { sessionId: key.id, remedy });
    return true;
  }

  async #remove(groupId: GroupId, key: SessionKey): Promise<boolean> {
    const { store, room, onEnded } = this.#parts;
    if (!(await store.sessions.removeSession(key))) return false;
    room.added(groupId, -1);
    onEnded(groupId, key.id);
    return true;
  }
}

/** Waits for tasks that run at once: each will waits for its transaction, and many wills are due after a kill. @throws what a task throws, after all ended. */
async function allSettled<T>(tasks: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(tasks);
  return Promise.all(tasks);
}

/**
 * Names the publish of a will. Each attempt uses the same name, because a node may time out, or be killed before it records the success. Session time
 * cannot tell two wills of a session apart: it may stand still between them. Names have a scope of their own: when a client begins a new session, the broker
 * drops the keys of the former one, and another node may still be publishing its will.
 */
function nameOfWill({ id, detachedAt = 0 }: StoredSession, will: StoredWill): WillName {
  // The will may move to another row: see `SessionGranted`. Only wills of earlier versions have no identifier.
  return { session: { id: `${will.id ?? id} will` }, key: will.id === undefined ? `will-of-${detachedAt}` : "will" };
}
