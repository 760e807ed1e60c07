import { type DeliveryWindow, type InFlight, isOutsideStream, type Ticket } from "../../domain/delivery-window.ts";
import { minOf, type Position } from "../../domain/position.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { SessionState } from "../../ports/session-store.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Delivery, Peer } from "./peer.ts";
import { LazyMap, LazySet } from "../../lib/lazy-collections.ts";

/** A peer, and the state of its deliveries. */
export interface Connection {
  readonly peer: Peer;
  readonly windowMax: number;
  /** The loops that deliver to the peer; undefined while the index rolls back. */
  reading: Reading | undefined;
  /** Position at which the next feed begins. */
  readUpTo: Position;
  readonly outgoing: Outgoing;
  /** Unacknowledged tickets of this peer, in the order of delivery. */
  readonly held: LazySet<Ticket>;
  /** Position up to which events were delivered to an earlier connection, or did not match. */
  repeatedUpTo: Position;
  /** Events of the stream that an earlier connection had, and that the feed of this connection has not reached; in order. */
  readonly repeats: LazyMap<Position, InFlight>;
}

/** A feed, and the loops that deliver its events to a peer. */
export interface Reading {
  readonly feed: Feed;
  /** Call it when there may be events to deliver besides those of the feed. */
  wake(): void;
  /** Resolves when the last delivery has ended. Never rejects. */
  end(): Promise<void>;
}

/** A rollback of the index to a new generation: it removed the events after `to`, and those from outside the stream after `outsideTo`. */
interface RolledBackTo {
  readonly to: Position;
  readonly outsideTo: Position;
  readonly generation: number;
}

/** Options of a new connection. */
type ConnectionOptions = Pick<Connection, "peer" | "windowMax" | "outgoing">;

/** Creates a connection without deliveries. It holds the tickets of received events whose release is still open. */
export function createConnection(
  { peer, windowMax, outgoing }: ConnectionOptions,
  window: DeliveryWindow,
  { cursor, taken }: Pick<SessionState, "cursor" | "taken">,
): Connection {
  const received = [...window.entries].filter(({ state }) => state === "received");
  const repeats = new LazyMap<Position, InFlight>();
  for (const entry of inFlight(window, "stream")) repeats.set(entry.position, entry);
  return {
    peer,
    windowMax,
    outgoing,
    reading: undefined,
    readUpTo: cursor,
    held: new LazySet(received.map(({ ticket }) => ticket)),
    repeatedUpTo: taken,
    repeats,
  };
}

/** The events in flight that come from the session's stream, or those from outside it: retained events and events of shares. */
export function inFlight(window: DeliveryWindow, where: "stream" | "outside"): readonly InFlight[] {
  return [...window.entries].filter((entry) => isOutsideStream(entry) === (where === "outside"));
}

/** The event that an earlier connection had at a position, if this one must still get it. */
export function findRepeat(
  { repeats, held }: Connection,
  window: DeliveryWindow,
  position: Position,
): InFlight | undefined {
  const entry = repeats.get(position);
  if (entry === undefined || held.has(entry.ticket)) return undefined;
  return window.find(entry.ticket)?.state === "given" ? entry : undefined;
}

/**
 * Takes back deliveries that wait until the session is written, if their events are after `to`, or after `outsideTo` for events from outside the stream. The
 * peer does not have these events. Without this, it would get those that are still on the chain twice.
 */
function takeBackUnsent({ outgoing, held }: Connection, window: DeliveryWindow, { to, outsideTo }: RolledBackTo): void {
  const isAfter = ({ event, isRepeated, isRetained, filters }: Delivery): boolean => {
    const isOutside = isRetained === true || filters.some(({ filter }) => isShared(filter));
    return !isRepeated && event.position > (isOutside ? outsideTo : to); // The client may have the ticket of a repeat.
  };
  for (const { ticket } of outgoing.drop(isAfter)) {
    if (ticket === undefined) continue;
    window.acknowledge(ticket);
    held.delete(ticket);
  }
}

/** Rolls a window, and its connection if it has one, back with the index. */
export function rollBackDeliveries(
  window: DeliveryWindow,
  connection: Connection | undefined,
  rolledBack: RolledBackTo,
): void {
  if (connection !== undefined) takeBackUnsent(connection, window, rolledBack);
  window.rollBack(rolledBack.to, rolledBack.outsideTo);
  if (connection !== undefined) rollBackConnection(connection, window, rolledBack);
}

function rollBackConnection(connection: Connection, window: DeliveryWindow, { to, generation }: RolledBackTo): void {
  connection.repeatedUpTo = minOf(connection.repeatedUpTo, to);
  connection.readUpTo = minOf(connection.readUpTo, to);
  connection.peer.rolledBack?.(to, generation);
  for (const ticket of connection.held) if (window.find(ticket) === undefined) connection.held.delete(ticket);
  // The peer gets no repeat of these events of QoS 2, so it sends no answer that would lead to their release.
  for (const { ticket, state } of window.entries) {
    if (state !== "received" || connection.held.has(ticket)) continue;
    connection.held.add(ticket);
    connection.outgoing.release(ticket);
  }
}

/** Whether the peer may get another event. */
export function hasRoom({ peer, windowMax, held, outgoing }: Connection): boolean {
  return held.size < windowMax && peer.hasRoom && outgoing.hasRoom;
}

/**
 * Whether the peer may get another event of a share. Events that an earlier connection did not acknowledge count too, even if this connection does not have
 * them yet: otherwise the window would grow with each connection.
 */
export function hasRoomForShares(connection: Connection | undefined, inFlightCount: number): boolean {
  if (connection?.reading === undefined || !hasRoom(connection)) return false;
  return inFlightCount < connection.windowMax;
}
