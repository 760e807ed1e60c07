import type { SessionId } from "../../ports/session-store.ts";
import type { ConnectedSession } from "../broker.ts";

type Inbound = ConnectedSession["inbound"];

/**
 * The publishes of QoS 2 that clients without connection have not released, by session: a client that comes back repeats them. In the memory of this
 * node, so a restart forgets them.
 */
export class Unreleased {
  readonly #sessionsMax: number;
  /** Kept first, first. */
  readonly #bySession = new Map<SessionId, Inbound>();

  /** Beyond `sessionsMax`, the session that lost its connection first is forgotten. */
  constructor(sessionsMax: number) {
    this.#sessionsMax = sessionsMax;
  }

  keep({ id, inbound }: { readonly id: SessionId; readonly inbound: Inbound }): void {
    this.#bySession.delete(id);
    if (inbound.size > 0) this.#bySession.set(id, inbound);
    const [oldest] = this.#bySession.keys();
    if (oldest !== undefined && this.#bySession.size > this.#sessionsMax) this.#bySession.delete(oldest);
  }

  /** Those of a session that goes on. */
  take(id: SessionId): Inbound {
    const inbound = this.#bySession.get(id) ?? new Map();
    this.#bySession.delete(id);
    return inbound;
  }

  forget(id: SessionId): void {
    this.#bySession.delete(id);
  }
}
