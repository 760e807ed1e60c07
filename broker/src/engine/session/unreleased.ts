import type { SessionId, StoredSession } from "../../ports/session-store.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";
import type { ConnectedSession } from "../broker.ts";

/** Packet identifiers that are kept, about 200 bytes each. */
const identifiersMax = 100_000;

/** The publishes of QoS 2 of a session at this node, as long as no other node has the session in between. */
export interface Inbound {
  readonly outcomes: ConnectedSession["inbound"];
  /** The epoch moves on with the connections. */
  readonly keys: { readonly id: SessionId; epoch: number };
}

/** A session whose connection has ended. */
interface Left {
  readonly id: SessionId;
  readonly epoch: number;
  readonly inbound: Inbound["outcomes"];
  readonly keys: Inbound["keys"];
}

interface Kept extends Inbound {
  /** Of the connection that has ended. */
  readonly epoch: number;
  readonly count: number;
}

/**
 * The publishes of QoS 2 that clients without connection have not released, by session: a client that comes back repeats them. They save the search
 * that publish once makes after a restart, or after they were forgotten here.
 */
export class Unreleased {
  /** Kept first, first. */
  readonly #bySession = new Map<SessionId, Kept>();
  #count = 0;

  /** Where too many are kept, the session that lost its connection first is forgotten. */
  keep({ id, epoch, inbound: outcomes, keys }: Left): void {
    this.forget(id);
    const count = outcomes.size;
    if (count === 0) return;
    this.#bySession.set(id, { outcomes, keys, epoch, count }); // a publish that is refused leaves it by itself
    this.#count += count;
    for (const oldest of this.#bySession.keys()) {
      if (this.#count <= identifiersMax) return;
      this.forget(oldest);
    }
  }

  /** Those of a session that goes on, given its row before. At another node its client may have released them, and used their identifiers again. */
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

/** Whether the end of the connection is all that came after it. */
function isNext({ epoch }: Kept, former: Pick<StoredSession, "epoch" | "detachedAt">): boolean {
  return former.epoch === (former.detachedAt === undefined ? epoch : epoch + 1);
}
