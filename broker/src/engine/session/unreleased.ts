import type { SessionId, SessionKey, StoredSession } from "../../ports/session-store.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";
import type { ConnectedSession } from "../broker.ts";

/** Maximum number of packet identifiers in memory, about 200 bytes each. */
const identifiersMax = 100_000;

/** The unreleased publishes of QoS 2 of a session at this node. They are valid until another node gets the session. */
export interface Inbound {
  readonly outcomes: ConnectedSession["inbound"];
  /** The epoch changes with each connection. */
  readonly keys: { readonly id: SessionId; epoch: number };
}

/** A session whose connection has ended. */
interface Left {
  readonly key: SessionKey;
  readonly inbound: Inbound["outcomes"];
  readonly keys: Inbound["keys"];
}

interface Kept extends Inbound {
  /** Epoch of the connection that has ended. */
  readonly epoch: number;
  readonly count: number;
}

/**
 * The publishes of QoS 2 that disconnected clients have not released, by session. A client that comes back repeats them. Without them, for example after a
 * restart, `PublishOnce` has to search the topic.
 */
export class Unreleased {
  /** Entries in the order in which the connections ended. */
  readonly #bySession = new Map<SessionId, Kept>();
  #count = 0;

  /** Keeps the unreleased publishes of a session. If there are too many, forgets the session that lost its connection first. */
  keep({ key: { id, epoch }, inbound: outcomes, keys }: Left): void {
    this.forget(id);
    const count = outcomes.size;
    if (count === 0) return;
    this.#bySession.set(id, { outcomes, keys, epoch, count }); // A refused publish removes itself from `outcomes`.
    this.#count += count;
    for (const oldest of this.#bySession.keys()) {
      if (this.#count <= identifiersMax) return;
      this.forget(oldest);
    }
  }

  /**
   * The publishes of a session that continues; `former` is its earlier row. None if another node had the session meanwhile, because the client may have
   * reused the identifiers there.
   */
  take(id: SessionId, former: Pick<StoredSession, "epoch" | "detachedAt"> | undefined): Inbound {
    const kept = this.#bySession.get(id);
    this.forget(id);
    if (kept !== undefined && former !== undefined && isNext(kept, former)) return kept;
    return { outcomes: new LazyMap(), keys: { id, epoch: 0 } };
  }

  forget(id: SessionId): void {
    this.#count -= this.#bySession.get(id)?.count ?? 0;
    this.#bySession.delete(id);
  }
}

/** Whether the row is still that of the kept connection. Only the end of that connection may have changed it since. */
function isNext({ epoch }: Kept, former: Pick<StoredSession, "epoch" | "detachedAt">): boolean {
  return former.epoch === (former.detachedAt === undefined ? epoch : epoch + 1);
}
