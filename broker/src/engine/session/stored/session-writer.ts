import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../../domain/group-id.ts";
import { backoffDelayMs } from "../../../lib/backoff.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { Logger } from "../../../lib/logger.ts";
import { LastingTrouble } from "../../../lib/lasting-trouble.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { SessionState, SessionStore } from "../../../ports/session-store.ts";
import type { EngineLimits } from "../../limits.ts";

/** A session to write; `state` is its current state. */
export interface WritableSession {
  readonly state: SessionState;
  /** Called when the store has the state. */
  written(state: SessionState): void;
}

export interface SessionWriterParts {
  readonly store: { readonly sessions: Pick<SessionStore, "saveSessions"> };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly slices: TimeSlices;
  /** Called with sessions that the store refused: they have ended, belong to another node, or were rolled back. */
  readonly onRefused: (sessions: readonly WritableSession[]) => void;
}

/** The writers of a node, one for each group: a rollback of one group may lock its sessions for long, and must not delay other groups. */
export class SessionWriters {
  readonly #byGroup: ReadonlyMap<GroupId, SessionWriter>;

  constructor(groupIds: readonly GroupId[], parts: SessionWriterParts) {
    this.#byGroup = new Map(groupIds.map((id) => [id, new SessionWriter(parts)]));
  }

  of(groupId: GroupId): SessionWriter {
    const writer = this.#byGroup.get(groupId);
    if (writer === undefined) throw new BrokerError("groupUnknown");
    return writer;
  }
}

/** Maximum number of sessions in one transaction, which must not delay the other writers of the store. */
const sessionsPerWriteMax = 500;

/** A session to write, with the promise for which callers of `written` wait. */
type DirtySession = readonly [WritableSession, Deferred<void> | undefined];

/** Shortest time between two writes, in milliseconds: so at most 200 writes a second, even if callers wait. */
const restMs = 5;

/**
 * Writes the states of a group's sessions together: within `progressDelayMs` of a change, or at once if somebody waits. There is one write at a time; changes
 * during a write go into the next one. A write that fails is retried.
 */
export class SessionWriter {
  readonly #parts: SessionWriterParts;
  readonly #trouble: ReportedTrouble;
  readonly #lasting: LastingTrouble;
  #dirty = new Map<WritableSession, Deferred<void> | undefined>();
  /** The sessions of the write in progress that are not written yet. */
  #left = new Map<WritableSession, Deferred<void> | undefined>();
  /** Promises for sessions that the store refused. Each resolves with the next write of its session, after the session was read again. */
  readonly #refused = new WeakMap<WritableSession, Deferred<void>>();
  #failures = 0;
  #cancelTimer: (() => void) | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #notBefore = 0;
  /** Never rejects. */
  #writing: Promise<void> | undefined;
  /** Sessions of the current page that will be saved. */
  #encoded = new Set<WritableSession>();
  /** Sessions that the store is saving now. */
  #saved = new Set<WritableSession>();

  constructor(parts: SessionWriterParts) {
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(parts.logger, "sessions not written", "sessions written again");
    this.#lasting = new LastingTrouble({ ...parts, toleranceMs: parts.limits.outageToleranceMs });
  }

  /** A warning if writes have failed for `outageToleranceMs`; undefined otherwise. */
  findWarning(): string | undefined {
    const text = this.#isPending ? this.#lasting.find() : undefined;
    return text && `the states of sessions are not written, so their clients wait for answers: ${text}`;
  }

  /** Schedules a write. Call it when the session has changed. */
  note(session: WritableSession): void {
    this.#begins();
    if (!this.#dirty.has(session)) this.#dirty.set(session, this.#takeRefused(session));
    this.#writeAfter(this.#parts.limits.progressDelayMs);
  }

  /**
   * Resolves when the session's current state is on disk; never if the store refuses it and the session is not read again, or if the session is forgotten
   * first.
   */
  written(session: WritableSession): Promise<void> {
    this.#begins();
    const deferred = this.#dirty.get(session) ?? this.#takeRefused(session) ?? createDeferred<void>();
    this.#dirty.set(session, deferred);
    this.#writeAfter(0);
    return deferred.promise;
  }

  /** Stops writing the session. A save in progress still completes. */
  forget(session: WritableSession): void {
    this.#dirty.delete(session);
    this.#left.delete(session);
    this.#refused.delete(session);
    this.#encoded.delete(session);
  }

  /** Forgets the session, and writes its current state; no older state follows. @throws what the store throws. */
  async writeLast(session: WritableSession): Promise<void> {
    const isSaved = this.#saved.has(session);
    this.forget(session);
    if (isSaved) await this.#writing;
    await this.#parts.store.sessions.saveSessions([session.state], { isDurable: false });
  }

  /** Resolves when everything noted so far is written and no earlier write is in progress. @throws what the store throws. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#dirty.size > 0) await this.#begin();
  }

  get #isPending(): boolean {
    return this.#dirty.size > 0 || this.#writing !== undefined;
  }

  /** If nothing is pending, forgets an earlier failure: the sessions that could not be written were forgotten. */
  #begins(): void {
    if (!this.#isPending) this.#lasting.done();
  }

  #writeAfter(delayMs: number): void {
    if (this.#writing !== undefined) return; // The end of that write calls this again.
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const at = Math.max(now + delayMs, this.#notBefore);
    if (at >= this.#dueAt) return;
    this.#cancelTimer?.();
    this.#dueAt = at;
    this.#cancelTimer = clock.after(at - now, () => {
      this.#dueAt = Number.POSITIVE_INFINITY; // Even if nothing is left to write, so that the next change starts a timer.
      if (this.#dirty.size > 0 && this.#writing === undefined)
        this.#begin().catch((error: unknown) => this.#trouble.failed(error));
    });
  }

  #begin(): Promise<void> {
    const write = this.#write();
    const onEnded = (): void => {
      this.#writing = undefined;
      if (this.#dirty.size === 0) return;
      const isAwaited = [...this.#dirty.values()].some((deferred) => deferred !== undefined);
      this.#writeAfter(isAwaited ? 0 : this.#parts.limits.progressDelayMs);
    };
    this.#writing = write.then(onEnded, onEnded);
    return write;
  }

  async #write(): Promise<void> {
    this.#cancelTimer?.();
    this.#dueAt = Number.POSITIVE_INFINITY;
    const left = this.#dirty;
    this.#left = left;
    this.#dirty = new Map();
    // Sessions that somebody waits for come first.
    const ordered = [...left].toSorted((one, other) => Number(other[1] !== undefined) - Number(one[1] !== undefined));
    try {
      for (const page of pagesOf(ordered)) {
        await this.#writePage(page.filter(([session]) => left.has(session)));
        for (const [session] of page) left.delete(session);
      }
      this.#failures = 0;
      this.#trouble.done();
      this.#lasting.done();
      this.#notBefore = this.#parts.clock.monotonic() + restMs;
    } catch (error) {
      this.#lasting.failed(error);
      this.#takeBack(left);
      throw error;
    }
  }

  async #writePage(page: readonly DirtySession[]): Promise<void> {
    const { store, slices, onRefused } = this.#parts;
    const states = new Map<WritableSession, SessionState>();
    if (page.length === 0) return; // All were forgotten.
    this.#encoded = new Set(page.map(([session]) => session));
    for (const [session] of page) {
      states.set(session, session.state);
      await slices.pause();
    }
    const kept = page.filter(([session]) => this.#encoded.has(session));
    const rows = kept.flatMap(([session]) => states.get(session) ?? []);
    const isDurable = kept.some(([, deferred]) => deferred !== undefined);
    this.#saved = new Set(this.#encoded);
    const saving = store.sessions.saveSessions(rows, { isDurable }).finally(() => this.#saved.clear());
    const refused = new Set(await saving);
    const gone: WritableSession[] = [];
    for (const [session, deferred] of kept) {
      const row = states.get(session);
      if (row !== undefined && !refused.has(row.id)) {
        session.written(row);
        deferred?.resolve();
      } else {
        gone.push(session);
        if (deferred !== undefined) this.#keepRefused(session, deferred);
      }
    }
    if (gone.length > 0) onRefused(gone);
  }

  #keepRefused(session: WritableSession, deferred: Deferred<void>): void {
    const newer = this.#dirty.get(session);
    if (newer !== undefined) void newer.promise.then(() => deferred.resolve());
    else if (this.#dirty.has(session)) this.#dirty.set(session, deferred);
    else this.#refused.set(session, deferred);
  }

  #takeRefused(session: WritableSession): Deferred<void> | undefined {
    const deferred = this.#refused.get(session);
    this.#refused.delete(session);
    return deferred;
  }

  #takeBack(dirty: ReadonlyMap<WritableSession, Deferred<void> | undefined>): void {
    for (const [session, deferred] of dirty) {
      const newer = this.#dirty.get(session);
      if (newer !== undefined && deferred !== undefined) void newer.promise.then(() => deferred.resolve());
      else this.#dirty.set(session, newer ?? deferred);
    }
    const { clock, limits } = this.#parts;
    const { progressRetryDelayMsMin: delayMsMin, progressRetryDelayMsMax: delayMsMax } = limits;
    this.#failures += 1;
    this.#notBefore = clock.monotonic() + backoffDelayMs(this.#failures, { delayMsMin, delayMsMax, fraction: 0 });
  }
}

function* pagesOf(sessions: readonly DirtySession[]): Iterable<readonly DirtySession[]> {
  for (let start = 0; start < sessions.length; start += sessionsPerWriteMax) {
    yield sessions.slice(start, start + sessionsPerWriteMax);
  }
}
