import type { SessionId } from "../../ports/session-store.ts";
import type { ConnectedSession } from "../broker.ts";

/** Packet identifiers that are kept, about 200 bytes each. */
const identifiersMax = 100_000;

type Inbound = ConnectedSession["inbound"];

/**
 * The publishes of QoS 2 that clients without connection have not released, by session: a client that comes back repeats them. They save the search
 * that publish once makes after a restart, or after they were forgotten here.
 */
export class Unreleased {
  /** Kept first, first. */
  readonly #bySession = new Map<SessionId, { readonly inbound: Inbound; readonly count: number }>();
  #count = 0;

  /** Where too many are kept, the session that lost its connection first is forgotten. */
  keep({ id, inbound }: { readonly id: SessionId; readonly inbound: Inbound }): void {
    this.forget(id);
    if (inbound.size === 0) return;
    this.#bySession.set(id, { inbound, count: inbound.size }); // a publish that is refused leaves it by itself
    this.#count += inbound.size;
    for (const oldest of this.#bySession.keys()) {
      if (this.#count <= identifiersMax) return;
      this.forget(oldest);
    }
  }

  /** Those of a session that goes on. */
  take(id: SessionId): Inbound {
    const inbound = this.#bySession.get(id)?.inbound ?? new Map();
    this.forget(id);
    return inbound;
  }

  forget(id: SessionId): void {
    this.#count -= this.#bySession.get(id)?.count ?? 0;
    this.#bySession.delete(id);
  }
}
