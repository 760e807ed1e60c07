import { BrokerError, toBrokerError } from "@stele/wire";
import { endOfBlock, type Position } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { eventFilterOf, isShared } from "../../domain/shared-filter.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import { pause, type Timer } from "../../lib/pause.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { FilterChange, SessionStore, StoredFilter } from "../../ports/session-store.ts";
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import type { IndexHead } from "../../ports/store.ts";
import type { Group } from "../group.ts";
import { indexedUpTo } from "../index-progress.ts";
import type { Session } from "./session.ts";
import { checkEach } from "./session-slices.ts";
import { StoreTurns } from "./stored/store-turns.ts";

export interface SessionFiltersParts {
  readonly store: { readonly sessions: Pick<SessionStore, "saveSessionFilters"> };
  readonly randomness: Randomness;
  readonly clock: Timer;
  readonly access: Access;
  readonly slices: Pauses;
  readonly isShared: boolean;
  /** Reads a session again, after the store has refused to write it. */
  readonly onRefused: (session: Session) => Promise<void>;
  /** Stores a session that lived only in memory. Returns false if it must be read again first. @throws BrokerError 200300; and what the store throws. */
  readonly keep: (session: Session) => Promise<boolean>;
}

type Saved = Awaited<ReturnType<SessionStore["saveSessionFilters"]>>;

interface ChangedSession {
  readonly session: Session;
  readonly group: Group;
  /** Its signal aborts when the connection has ended. */
  readonly caller: Caller;
}

/** Maximum number of tries of a change while the index rolls back, or other nodes change the session. */
const triesMax = 10;

/** Wait before the next try to store a session that joins its first share, in milliseconds. All tries together outlast `watchPollMs`. */
const firstShareRetryMs = 200;

/** Adds and removes the filters of sessions: first in the store, if the session is stored. */
export class SessionFilters {
  readonly #parts: SessionFiltersParts;
  readonly #turns = new StoreTurns();
  /** Changes in progress. */
  readonly #running = new Set<Promise<unknown>>();
  readonly #stopping = new Cancellation();

  constructor(parts: SessionFiltersParts) {
    this.#parts = parts;
  }

  async subscribe(
    at: ChangedSession,
    sessionFilters: readonly SessionFilter[],
  ): Promise<readonly (boolean | BrokerError)[]> {
    const { session, group, caller } = at;
    const refusals: (BrokerError | undefined)[] = [];
    await checkEach(sessionFilters, { caller, slices: this.#parts.slices }, (sessionFilter) => {
      refusals.push(this.#refusalOf(sessionFilter, { group, caller }));
    });
    // After the checks, which pause: unSubscribe may have removed filters meanwhile.
    const answers = sessionFilters.map(({ filter }, index) => refusals[index] ?? !session.hasFilter(filter));
    const accepted = sessionFilters.filter((_, index) => refusals[index] === undefined);
    // One packet may name a filter twice: the last one counts.
    const byText = new Map(accepted.map((sessionFilter) => [sessionFilter.filter, sessionFilter]));
    const seen = new Set<TopicFilter>();
    const withRetained = accepted.filter(({ filter, retained }) => {
      const isNew = !session.hasFilter(filter) && !seen.has(filter);
      seen.add(filter);
      return !isShared(filter) && (retained === "always" || (retained === "if-new" && isNew));
    });
    const end = await this.#save(at, { sessionFilters: [...byText.values()], removed: [] });
    for (const { filter } of withRetained) session.giveRetained(filter, end);
    return answers;
  }

  async unsubscribe(at: ChangedSession, filters: readonly TopicFilter[]): Promise<readonly boolean[]> {
    // One packet may name a filter twice: then the second removal finds none.
    const found = new Set(filters.filter((filter) => at.session.hasFilter(filter)));
    const answers = filters.map((filter) => found.delete(filter));
    await this.#save(at, { sessionFilters: [], removed: filters });
    return answers;
  }

  /**
   * Call it when the broker stops. Ends the changes that wait for their next try, refuses later ones, and resolves when none is in progress. A change that
   * waits for its turn does not begin once its connection has ended. Never rejects.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Returns the position after which new filters get events as they are published. */
  async #save(
    { session, group, caller }: ChangedSession,
    {
      sessionFilters,
      removed,
    }: { readonly sessionFilters: readonly SessionFilter[]; readonly removed: readonly TopicFilter[] },
  ): Promise<Position> {
    const isMember = sessionFilters.some(({ filter }) => isShared(filter));
    for (let tries = 0; tries < triesMax; tries += 1) {
      // A first share needs this node to have followed every rollback by other nodes. Wait outside the change: the rollback waits for changes.
      const waits = tries > 0 && !session.filterSet.areStored;
      if (waits) await pause(this.#parts.clock, firstShareRetryMs, caller.signal, this.#stopping);
      // Check before the first try too: `stop` does not wait for a subscribe whose rights are still being checked.
      if (this.#stopping.aborted) throw new BrokerError("busy", { details: "the broker stops" });
      if (tries > 0 && caller.signal.aborted) break;
      const tryOnce = async (): Promise<Position | undefined> => {
        // The store must know the members of a share.
        if (isMember && !session.isStored && !(await this.#parts.keep(session))) {
          await this.#parts.onRefused(session);
          return undefined;
        }
        // New filters begin at the end of the stored index, with its generation: this node may not know yet that another node has rolled the index back.
        const head = session.isStored ? await group.findHead() : undefined;
        const end = head === undefined ? indexedUpTo(group) : endOfBlock(head.blockNumber);
        const put = sessionFilters.map((sessionFilter) => this.#toStored(sessionFilter, session, end));
        const change = { put, removed, generation: head?.generation ?? 0 };
        const outcome = session.isStored ? await this.#write({ session, group }, change) : "saved";
        if (outcome === "refused") await this.#parts.onRefused(session);
        if (outcome !== "saved") return undefined;
        session.unsubscribe(removed);
        const begun = put.filter(({ filter }) => !session.hasFilter(filter) && !isShared(filter));
        const passedUpTo = session.put(put);
        if (passedUpTo <= end || this.#isBehind(head, session, group)) return end;
        await this.#beginLater(session, begun, { passedUpTo, generation: head?.generation ?? 0 });
        return passedUpTo;
      };
      const run = (): Promise<Position | undefined> => this.#track(group.changes.shared(tryOnce));
      const usesStore = session.isStored || isMember;
      const done = usesStore ? await this.#turns.run(group.id, run, caller.signal) : { result: await run() };
      if (done === undefined) throw new BrokerError("busy", { details: "the connection has ended" });
      if (done.result !== undefined) return done.result;
    }
    throw new BrokerError("busy", { details: "the index rolls back" });
  }

  /** Writes a change of a stored session. */
  #write(at: Pick<ChangedSession, "session" | "group">, change: FilterChange): Promise<Saved | undefined> {
    const { key, filterSet } = at.session;
    return filterSet.areStored
      ? this.#parts.store.sessions.saveSessionFilters(key, change)
      : this.#writeAll(at, change);
  }

  /**
   * Writes a change together with all other filters of the session. Replaces the filters in the row, which has none, or those of an earlier try without an
   * answer. Undefined if somebody has removed one of the other filters meanwhile: the row may still have that filter, and the next try leaves it out.
   */
  async #writeAll(
    { session, group }: Pick<ChangedSession, "session" | "group">,
    change: FilterChange,
  ): Promise<Saved | undefined> {
    // The starts of the other filters follow a rollback by another node only when this node does: write them only under the generation that this node knows.
    if (this.#parts.isShared && change.generation !== group.progress.generation) return "rolled-back";
    const others = othersOf(session, [...change.removed, ...textsOf(change.put)]);
    const all = { ...change, put: [...others, ...change.put], replacesAll: true };
    const outcome = await this.#parts.store.sessions.saveSessionFilters(session.key, all);
    const lacksSome = others.some(({ filter }) => !session.hasFilter(filter));
    return outcome === "saved" && lacksSome ? undefined : outcome;
  }

  async #track<T>(change: Promise<T>): Promise<T> {
    this.#running.add(change);
    try {
      return await change;
    } finally {
      this.#running.delete(change);
    }
  }

  /** Whether the session has yet to follow a rollback of the index: then other events will take places that its feed has passed. */
  #isBehind(head: IndexHead | undefined, session: Session, { progress }: Group): boolean {
    if (!session.isStored) return false;
    return session.isStopped || (this.#parts.isShared && head?.generation !== progress.generation);
  }

  /**
   * Moves the starts of new filters to `passedUpTo`. The feed has passed events without these filters, because the index grew after this node found its end.
   * The client gets those that are retained as retained events, so the session's next connection must not deliver them again.
   */
  async #beginLater(
    session: Session,
    begun: readonly StoredFilter[],
    { passedUpTo, generation }: { readonly passedUpTo: Position; readonly generation: number },
  ): Promise<void> {
    if (!session.isStored || begun.length === 0) return;
    const put = begun.map((filter) => ({ ...filter, startsAfter: passedUpTo }));
    const outcome = await this.#parts.store.sessions.saveSessionFilters(session.key, { put, removed: [], generation });
    if (outcome === "saved") session.put(put);
  }

  #refusalOf(
    { filter }: SessionFilter,
    { group, caller }: { readonly group: Group; readonly caller: Caller },
  ): BrokerError | undefined {
    const topic = eventFilterOf(filter);
    try {
      this.#parts.access.authorize(caller, "subscribe", { groupId: group.id, topic });
      if (isShared(filter)) this.#parts.access.checkReceiver(caller, group.id, topic);
      return undefined;
    } catch (error) {
      return toBrokerError(error);
    }
  }

  #toStored(sessionFilter: SessionFilter, session: Session, end: Position): StoredFilter {
    const known = session.filterSet.find(sessionFilter.filter);
    const id = known?.id ?? parseSubscriptionId(this.#parts.randomness.uuid());
    return { ...sessionFilter, id, startsAfter: known?.startsAfter ?? end };
  }
}

/** The session's filters, except those with one of these texts. */
function othersOf(session: Session, texts: readonly TopicFilter[]): readonly StoredFilter[] {
  const changed = new Set(texts);
  return session.filterSet.all.filter(({ filter }) => !changed.has(filter));
}

function textsOf(filters: readonly StoredFilter[]): readonly TopicFilter[] {
  return filters.map(({ filter }) => filter);
}
