import { eventFilterOf } from "../../domain/shared-filter.ts";
import type { SessionProtocol, SubscriptionId } from "../../domain/subscription.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { SessionName, SessionStore, StoredFilter, StoredSession } from "../../ports/session-store.ts";
import type { Access, Removable } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import type { Connected } from "./connected.ts";
import type { Session } from "./session.ts";
import { checkEach } from "./session-slices.ts";
import type { SessionRoom } from "./stored/session-room.ts";

export interface FilterRemovalParts {
  readonly store: {
    readonly sessions: Pick<SessionStore, "findFilterOwner" | "findSession" | "removeSession" | "removeSessionFilter">;
  };
  readonly access: Pick<Access, "mayRemove">;
  readonly slices: Pauses;
  /** Sessions that are connected to this node, by name. */
  readonly connected: Pick<ReadonlyMap<string, Connected>, "get">;
  /** Finds the connected session that has a filter. */
  readonly findOwner: (id: SubscriptionId) => Connected | undefined;
  readonly room: Pick<SessionRoom, "added">;
  /** Whether other nodes may have the connection of a session. */
  readonly isShared: boolean;
  /** The lock of each session name: whoever attaches or detaches a session, or removes filters, must hold it. */
  readonly locks: KeyedMutex<string>;
  /** Called after the session's row has changed in the store; reads the row again. Never rejects. */
  readonly onChanged: (session: Session) => Promise<void>;
  /** Ends a session. */
  readonly onEnded: (known: Connected) => Promise<void>;
}

/** Filters that end together. */
interface Found {
  /** Name of the session. */
  readonly name: string;
  readonly removables: readonly Removable[];
}

/**
 * Removes a filter of a session when somebody other than the session's client asks for it. A session of STOMP is one subscription, so it ends with all
 * its filters.
 */
export class FilterRemoval {
  readonly #parts: FilterRemovalParts;

  constructor(parts: FilterRemovalParts) {
    this.#parts = parts;
  }

  /**
   * Removes a filter if it exists and the caller may remove all filters that end with it. Returns whether it was removed. @throws BrokerError as
   * {@link Access.mayRemove} and {@link checkEach}.
   */
  async run(id: SubscriptionId, caller: Caller): Promise<boolean> {
    const found = this.#findConnected(id) ?? (await this.#findStored(id));
    if (found === undefined || !(await this.#mayRemove(found, caller))) return false;
    return this.#parts.locks.run(found.name, () => this.#remove(found.name, id));
  }

  async #mayRemove({ removables }: Found, caller: Caller): Promise<boolean> {
    const { access, slices } = this.#parts;
    let mayRemove = true;
    await checkEach(removables, { caller, slices }, (removable) => {
      mayRemove &&= access.mayRemove(caller, removable);
    });
    return mayRemove;
  }

  #findConnected(id: SubscriptionId): Found | undefined {
    const known = this.#parts.findOwner(id);
    if (known === undefined) return undefined;
    const { name, session, ownedBy: owner, group, protocol } = known;
    const ending = endingWith(id, protocol, session.filterSet.all);
    return { name, removables: ending.map(({ filter }) => ({ owner, groupId: group.id, filter })) };
  }

  async #findStored(id: SubscriptionId): Promise<Found | undefined> {
    const found = await this.#parts.store.sessions.findFilterOwner(id);
    if (found === undefined) return undefined;
    const { principal: owner, groupId, protocol } = found.session;
    const ending = endingWith(id, protocol, found.filters);
    return { name: nameOf(found.session), removables: ending.map(({ filter }) => ({ owner, groupId, filter })) };
  }

  /** The caller must hold the lock of the session's name, so that no connection at this node gets the session meanwhile. Another node may still take it. */
  async #remove(name: string, id: SubscriptionId): Promise<boolean> {
    const { connected, store, onEnded } = this.#parts;
    const known = connected.get(name);
    if (known === undefined) return this.#removeStored(id);
    if (known.protocol === "STOMP") {
      await onEnded(known);
      await this.#removeStored(id); // In case another node has taken the session meanwhile.
      return true;
    }
    return known.group.changes.shared(async () => {
      const { session } = known;
      const wasInMemory = !session.filterSet.areStored && removeFrom(session, id);
      if (!session.isStored) return wasInMemory;
      // Remove the row's filter even if the filter was in memory: while a session joins its first share, the store may write the filters before it answers.
      const wasInRow = await store.sessions.removeSessionFilter(id);
      await this.#parts.onChanged(session);
      return wasInMemory || wasInRow;
    });
  }

  /**
   * If another node may have the connection of a STOMP session, removes only the filters: that node then ends the session. A single node removes the session at
   * once. Its row may still name a connection, because a stop leaves rows as they are, but there is none. If only its filters were removed, the next start
   * would keep the session without filters.
   */
  async #removeStored(id: SubscriptionId): Promise<boolean> {
    const { sessions } = this.#parts.store;
    const { session, filters } = (await sessions.findFilterOwner(id)) ?? {};
    if (session?.protocol !== "STOMP") return sessions.removeSessionFilter(id);
    if (session.detachedAt !== undefined || !this.#parts.isShared) return this.#removeLeft(session);
    // Remove the filter of the call last. If the database fails before that, a repeat of the call finds this filter, and so the session's other filters.
    for (const filter of filters ?? []) if (filter.id !== id) await sessions.removeSessionFilter(filter.id);
    await sessions.removeSessionFilter(id);
    const left = await sessions.findSession(session.id);
    // The session lost its connection before its last filter was gone. If it has filters now, its client has begun it again since.
    if (left?.session.detachedAt !== undefined && left.filters.length === 0) await this.#removeLeft(left.session);
    return true;
  }

  async #removeLeft(session: StoredSession): Promise<boolean> {
    const isRemoved = await this.#parts.store.sessions.removeSession(session);
    if (isRemoved && session.detachedAt !== undefined) this.#parts.room.added(session.groupId, -1);
    return isRemoved;
  }
}

/** The name of a session at this node. */
export function nameOf({ groupId, protocol, key }: SessionName): string {
  return JSON.stringify([groupId, protocol, key]);
}

/** A session of STOMP is one subscription, however many filters it has. */
function endingWith(
  id: SubscriptionId,
  protocol: SessionProtocol,
  filters: readonly StoredFilter[],
): readonly Pick<Removable, "filter">[] {
  const ending = protocol === "STOMP" ? filters : filters.filter((filter) => filter.id === id);
  return ending.map(({ filter }) => ({ filter: eventFilterOf(filter) }));
}

function removeFrom(session: Session, id: SubscriptionId): boolean {
  const texts = session.filterSet.all.filter((filter) => filter.id === id).map(({ filter }) => filter);
  session.unsubscribe(texts);
  return texts.length > 0;
}
