import type { EventId } from "@stele/wire";
import type { Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { QoS, SessionFilter } from "../../domain/session-filter.ts";

/** An event for a session. */
export interface Delivery {
  readonly event: Event;
  /** The event's identifier; meaningless if the event is never committed. */
  readonly eventId: EventId;
  readonly qos: QoS;
  /** The ticket that the peer acknowledges; undefined with QoS 0. */
  readonly ticket: Ticket | undefined;
  /** Whether an earlier delivery of the event may have reached the client. */
  readonly isRepeated: boolean;
  /** Whether a subscription gets the event because its topic retains it. The default is false. */
  readonly isRetained?: boolean;
  /** The filters that match; empty if the client has removed them since. */
  readonly filters: readonly SessionFilter[];
}

/**
 * `taken-over`: another connection has the session. `stopping`: the broker stops. `failed`: an event could not be delivered. `stale`: this node is no
 * longer a member. `removed`: unSubscribe ended the session. `refused`: the rights of the connection's principal have ended.
 */
export type EndReason = "taken-over" | "stopping" | "failed" | "stale" | "removed" | "refused";

/** The connection of a session, as the engine sees it. Its methods return at once. */
export interface Peer {
  /** Delivers an event. If it throws, the connection ends. */
  deliver(delivery: Delivery): void;
  /** Delivers an event that is never committed; a peer without room drops it. Only peers that accept such events need this. */
  pass?(delivery: Delivery): void;
  /** Asks the peer, which has the event, to acknowledge its release (MQTT, QoS 2). */
  release(ticket: Ticket): void;
  /** Whether the peer accepts another event now. When it has room again, it calls {@link Session.wake}. */
  readonly hasRoom: boolean;
  ended(reason: EndReason): void;
  /**
   * A reorg removed the events after this position. `generation` is the new generation of the index. The events of the new branch follow; the peer may have
   * some already.
   */
  rolledBack?(to: Position, generation: number): void;
  /** The session is suspended: its client rejected the event too often, and gets nothing until it attaches again. Only peers that reject events need this. */
  suspended?(ticket: Ticket): void;
}

/** The part of a session that a tail's peer needs. */
export interface TailSession {
  /** Whether this node cannot read the session's events at the moment. */
  readonly isStuck: boolean;
  /** Call it when the peer has room again. */
  wake(): void;
}
