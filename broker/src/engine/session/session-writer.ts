import { backoffDelayMs } from "../../lib/backoff.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SessionState, SessionStore } from "../../ports/session-store.ts";
import type { EngineLimits } from "../limits.ts";

/** What is written of a session, as it is at that moment. */
export interface Written {
  readonly state: SessionState;
}

export interface SessionWriterParts {
  readonly store: { readonly sessions: Pick<SessionStore, "saveSessions"> };
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** Told of sessions that the store refused: they are no more, or another's by now, or have gone back. */
  readonly onRefused: (sessions: readonly Written[]) => void;
}

/** Shortest time between two writes, in milliseconds: at most 200 a second, whatever waits for them. */
const restMs = 5;

/**
 * Writes the states of sessions in groups: within `progressDelayMs` of a change, or at once where somebody waits. One write at a time; what changes
 * meanwhile goes with the next. A write that fails is tried again.
 */
export class SessionWriter {
  readonly #parts: SessionWriterParts;
  readonly #trouble: ReportedTrouble;
  #dirty = new Map<Written, Deferred<void> | undefined>();
  /** Waits of sessions that the store refused: the next write counts, which follows once their owner has read them again. */
  readonly #refused = new WeakMap<Written, Deferred<void>>();
  #failures = 0;
  #cancelTimer: (() => void) | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #notBefore = 0;
  /** Never rejects. */
  #writing: Promise<void> | undefined;

  constructor(parts: SessionWriterParts) {
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(parts.logger, "sessions not written", "sessions written again");
  }

  /** The session has changed. */
  note(session: Written): void {
    if (!this.#dirty.has(session)) this.#dirty.set(session, this.#takeRefused(session));
    this.#writeAfter(this.#parts.limits.progressDelayMs);
  }

  /** Answers when what the session is now is on disk. It never answers where the store refuses it for good, or the session is forgotten first. */
  written(session: Written): Promise<void> {
    const deferred = this.#dirty.get(session) ?? this.#takeRefused(session) ?? createDeferred<void>();
    this.#dirty.set(session, deferred);
    this.#writeAfter(0);
    return deferred.promise;
  }

  /** The session is not written any more. A write under way may still bring it to the store. */
  forget(session: Written): void {
    this.#dirty.delete(session);
    this.#refused.delete(session);
  }

  /** Answers when everything noted so far is written, and no write is under way that began before. @throws what the store throws. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#dirty.size > 0) await this.#begin();
  }

  #writeAfter(delayMs: number): void {
    if (this.#writing !== undefined) return; // its end looks again
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const at = Math.max(now + delayMs, this.#notBefore);
    if (at >= this.#dueAt) return;
    this.#cancelTimer?.();
    this.#dueAt = at;
    this.#cancelTimer = clock.after(at - now, () => {
      this.#dueAt = Number.POSITIVE_INFINITY; // also where nothing is left to write
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
    const { store, clock, onRefused } = this.#parts;
    this.#cancelTimer?.();
    this.#dueAt = Number.POSITIVE_INFINITY;
    const dirty = this.#dirty;
    this.#dirty = new Map();
    const rows = new Map(Array.from(dirty.keys(), (session) => [session.state, session]));
    const isDurable = [...dirty.values()].some((deferred) => deferred !== undefined);
    try {
      const refused = new Set(await store.sessions.saveSessions([...rows.keys()], { isDurable }));
      this.#failures = 0;
      this.#trouble.done();
      this.#notBefore = clock.monotonic() + restMs;
      const gone = [...rows].flatMap(([{ id }, session]) => (refused.has(id) ? session : []));
      for (const [session, deferred] of dirty) {
        if (!gone.includes(session)) deferred?.resolve();
        else if (deferred !== undefined) this.#keepRefused(session, deferred);
      }
      if (gone.length > 0) onRefused(gone);
    } catch (error) {
      this.#takeBack(dirty);
      throw error;
    }
  }

  #keepRefused(session: Written, deferred: Deferred<void>): void {
    const newer = this.#dirty.get(session);
    if (newer !== undefined) void newer.promise.then(() => deferred.resolve());
    else if (this.#dirty.has(session)) this.#dirty.set(session, deferred);
    else this.#refused.set(session, deferred);
  }

  #takeRefused(session: Written): Deferred<void> | undefined {
    const deferred = this.#refused.get(session);
    this.#refused.delete(session);
    return deferred;
  }

  #takeBack(dirty: ReadonlyMap<Written, Deferred<void> | undefined>): void {
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
