import type { EventId } from "@stele/wire";
import type { Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { QoS, SessionFilter } from "../../domain/session-filter.ts";

/** An event for a session. */
export interface Delivery {
  readonly event: Event;
  /** Not of an event that is committed nowhere. */
  readonly eventId: EventId;
  readonly qos: QoS;
  /** What the peer acknowledges; undefined with QoS 0. */
  readonly ticket: Ticket | undefined;
  /** Whether an earlier connection of the session may have had it. */
  readonly isRepeated: boolean;
  /** Whether a subscription gets it because its topic retains it; not when left out. */
  readonly isRetained?: boolean;
  /** The filters that match; empty where they were removed since. */
  readonly filters: readonly SessionFilter[];
}

/**
 * `taken-over`: another connection has the session. `stopping`: the broker stops. `failed`: an event could not be delivered. `stale`: this node is no
 * member any more. `removed`: unSubscribe ended the session. `refused`: the rights of its principal have ended.
 */
export type EndReason = "taken-over" | "stopping" | "failed" | "stale" | "removed" | "refused";

/** The connection of a session, as the engine sees it. Its methods return at once. */
export interface Peer {
  /** Where it throws, the connection ends. */
  deliver(delivery: Delivery): void;
  /** An event that is committed nowhere: without room for it, the peer drops it. Only peers that take such events need this. */
  pass?(delivery: Delivery): void;
  /** The peer has the event; it is to acknowledge its release (MQTT, QoS 2). */
  release(ticket: Ticket): void;
  /** Whether it takes another event now. Once it does again, it calls {@link Session.wake}. */
  readonly hasRoom: boolean;
  ended(reason: EndReason): void;
  /** The chain took back what came after this position. Events that stand there now follow, and some may come again. Left out by peers that need not know. */
  rolledBack?(to: Position): void;
  /** The session is suspended: its client rejected the event too often, and gets nothing until it attaches again. Only peers that reject need it. */
  suspended?(ticket: Ticket): void;
}

/** What a peer needs of its session to take events alone. */
export interface TailSession {
  /** Whether its events cannot be read at this node at the moment. */
  readonly isStuck: boolean;
  /** The peer has room again. */
  wake(): void;
}
