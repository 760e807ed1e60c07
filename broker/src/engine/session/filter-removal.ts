import type { SubscriptionId } from "../../domain/subscription.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { SessionName, SessionStore } from "../../ports/session-store.ts";
import type { Connected } from "./connected.ts";
import type { Session } from "./session.ts";

export interface FilterRemovalParts {
  readonly store: { readonly sessions: Pick<SessionStore, "findFilterOwner" | "removeSessionFilter"> };
  /** By name. */
  readonly connected: ReadonlyMap<string, Connected>;
  /** In which a name gets its session. */
  readonly turns: KeyedMutex<string>;
  /** The store has another row of a session than this node. Never rejects. */
  readonly onChanged: (session: Session) => Promise<void>;
}

/** Removes filters of sessions that somebody else than their client asks for. */
export class FilterRemoval {
  readonly #parts: FilterRemovalParts;

  constructor(parts: FilterRemovalParts) {
    this.#parts = parts;
  }

  /** Answers whether there was such a filter. */
  async run(id: SubscriptionId): Promise<boolean> {
    const name = this.#findConnected(id) ?? (await this.#findStored(id));
    return name !== undefined && this.#parts.turns.run(name, () => this.#remove(name, id));
  }

  #findConnected(id: SubscriptionId): string | undefined {
    for (const [name, { session }] of this.#parts.connected) {
      if (session.filters.some((filter) => filter.id === id)) return name;
    }
    return undefined;
  }

  async #findStored(id: SubscriptionId): Promise<string | undefined> {
    const found = await this.#parts.store.sessions.findFilterOwner(id);
    return found && nameOf(found.session);
  }

  /** No connection gets the session meanwhile, and the index does not roll back. */
  async #remove(name: string, id: SubscriptionId): Promise<boolean> {
    const { connected, store } = this.#parts;
    const known = connected.get(name);
    if (known === undefined) return store.sessions.removeSessionFilter(id);
    return known.group.changes.shared(async () => {
      const { session } = known;
      if (!session.isStored) return removeFrom(session, id);
      const isRemoved = await store.sessions.removeSessionFilter(id);
      await this.#parts.onChanged(session);
      return isRemoved;
    });
  }
}

/** What a session is known by at this node. */
export function nameOf({ groupId, protocol, key }: SessionName): string {
  return JSON.stringify([groupId, protocol, key]);
}

function removeFrom(session: Session, id: SubscriptionId): boolean {
  const texts = session.filters.filter((filter) => filter.id === id).map(({ filter }) => filter);
  session.unsubscribe(texts);
  return texts.length > 0;
}
