import type { GroupId } from "../../../domain/group-id.ts";
import type { NodeId } from "../../../domain/node.ts";
import type { CancelSignal } from "../../../lib/cancellation.ts";
import type { KeyedMutex } from "../../../lib/keyed-mutex.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import { keyOfClaim } from "../../../ports/claimed-session.ts";
import type { SessionId, SessionStore, StoredSession } from "../../../ports/session-store.ts";
import type { EngineLimits } from "../../limits.ts";
import type { Connected } from "../connected.ts";
import { nameOf } from "../filter-removal.ts";

/** Sessions per read of the store. */
const pageMax = 100;

export interface LostAttachesParts {
  readonly store: { readonly sessions: Pick<SessionStore, "listSessions" | "detachSession" | "takeDueSession"> };
  /** Sessions that are connected to this node, by name. */
  readonly connected: ReadonlyMap<string, Connected>;
  /** The lock of each session name. */
  readonly locks: KeyedMutex<string>;
  /** See `SessionSweeper`. */
  readonly isUnderWay: (id: SessionId) => boolean;
  readonly nodeId: () => NodeId | undefined;
  /** Lets the shares of a group take events of ended sessions back. */
  readonly checkReturned: (groupId: GroupId) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly signal: CancelSignal;
}

/**
 * Ends the connections of failed attaches. An attach can fail after the store recorded it: then the row says that the session is connected, although it is not.
 * Searches all sessions of this node for such rows, because only the lost answer named the row.
 */
export class LostAttaches {
  readonly #parts: LostAttachesParts;
  readonly #trouble: ReportedTrouble;
  #isWanted = false;
  #isRunning = false;

  constructor(parts: LostAttachesParts) {
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(parts.logger, "sessions of failed connections not ended, trying again");
  }

  /** Searches in the background. Call it when an attach has failed. */
  begin(): void {
    this.#isWanted = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Never rejects. One search serves all attaches that failed before it began. */
  async #run(): Promise<void> {
    const { clock, limits, signal } = this.#parts;
    this.#isRunning = true;
    while (this.#isWanted && !signal.aborted) {
      await pause(clock, limits.retryDelayMsMin, signal);
      this.#isWanted = false;
      try {
        await this.#endAll();
        this.#trouble.done();
      } catch (error) {
        this.#isWanted = true;
        this.#trouble.failed(error);
      }
    }
    this.#isRunning = false;
  }

  async #endAll(): Promise<void> {
    const { store, signal } = this.#parts;
    const owner = this.#parts.nodeId();
    for (let after: SessionId | undefined; !signal.aborted; ) {
      const page = await store.sessions.listSessions({ after, limit: pageMax });
      for (const { session } of page) {
        if (session.owner !== owner) continue;
        if (session.detachedAt === undefined) await this.#end(session);
        else if (owner !== undefined) await this.#giveBack(session);
      }
      after = page.at(-1)?.session.id;
      if (page.length < pageMax) return;
    }
  }

  /**
   * Gives a will back that a lost claim took, so that a sweep finds it. Leaves out a will that this node publishes now: another node would publish it too.
   * Holds the lock of the session's name: if the answer to that claim is still to come, the sweeper has the will by the time this node gets the lock.
   */
  async #giveBack(session: StoredSession): Promise<void> {
    const { locks, store, isUnderWay } = this.#parts;
    await locks.run(nameOf({ ...session, key: keyOfClaim(session.key) }), async () => {
      if (!isUnderWay(session.id)) await store.sessions.takeDueSession(session, undefined);
    });
  }

  /**
   * Ends a connection under the lock of the session's name, so that no other connection of this node gets the session meanwhile. The client was never
   * accepted, so its will is not published.
   */
  async #end(session: StoredSession): Promise<void> {
    const { connected, locks, store, checkReturned } = this.#parts;
    const name = nameOf(session);
    if (connected.has(name)) return;
    await locks.run(name, async () => {
      if (connected.has(name)) return;
      await store.sessions.detachSession(session, { will: undefined, willDelayMs: 0, expiryMs: session.expiryMs });
      checkReturned(session.groupId);
    });
  }
}
