import { type DeliveryWindow, type InFlight, isBeside, type Ticket } from "../../domain/delivery-window.ts";
import { minOf, type Position } from "../../domain/position.ts";
import type { SessionState } from "../../ports/session-store.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Peer } from "./peer.ts";
import type { SessionParts } from "./session-parts.ts";
import { LazyMap, LazySet } from "../../lib/lazy-collections.ts";

/** Events that may wait for a write, in front of a peer that has room. */
const outgoingMax = 1_000;

/** A peer with what feeds it. */
export interface Connection {
  readonly peer: Peer;
  windowMax: number;
  /** What gives to the peer; undefined while the index rolls back. */
  reading: Reading | undefined;
  /** Where the next feed begins. */
  readUpTo: Position;
  readonly outgoing: Outgoing;
  /** What this peer has and has not acknowledged, in the order in which it was given. */
  readonly held: LazySet<Ticket>;
  /** Events up to here were given to an earlier connection, or passed. */
  repeatedUpTo: Position;
  readonly repeats: LazyMap<Position, InFlight>;
}

/** A feed, and the loops that give its events to a peer. */
export interface Reading {
  readonly feed: Feed;
  /** There may be something to give besides the feed. */
  wake(): void;
  /** Answers when nothing is given any more. Never rejects. */
  end(): Promise<void>;
}

/** What a connection is made with. */
interface ConnectionOrder extends Pick<Connection, "peer" | "windowMax" | "outgoing"> {
  readonly parts: Pick<SessionParts, "mayReceive">;
}

/**
 * A connection that is given nothing yet. It holds what the client has received and not been released from. Events that the session may no longer
 * receive leave the window, where they would take the place of others for ever.
 */
export function createConnection(
  { parts, peer, windowMax, outgoing }: ConnectionOrder,
  window: DeliveryWindow,
  { cursor, taken }: Pick<SessionState, "cursor" | "taken">,
): Connection {
  for (const { ticket, topic, state, share } of window.entries) {
    const isGone = state !== "received" && share === undefined && !parts.mayReceive(topic);
    if (isGone) window.acknowledge(ticket);
  }
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

/** What is in flight of the stream, or beside it. */
export function inFlight(window: DeliveryWindow, where: "stream" | "beside"): readonly InFlight[] {
  return [...window.entries].filter((entry) => isBeside(entry) === (where === "beside"));
}

/** What the peer has, in the order in which it was given, up to a ticket; empty if it does not have that one. */
export function heldThrough(connection: Connection | undefined, ticket: Ticket): readonly Ticket[] {
  if (connection?.held.has(ticket) !== true) return [];
  const tickets = [...connection.held];
  return tickets.slice(0, tickets.indexOf(ticket) + 1);
}

/** What an earlier connection had at a place, if this one is still to get it. */
export function findRepeat(
  { repeats, held }: Connection,
  window: DeliveryWindow,
  position: Position,
): InFlight | undefined {
  const entry = repeats.get(position);
  if (entry === undefined || held.has(entry.ticket)) return undefined;
  return window.find(entry.ticket)?.state === "given" ? entry : undefined;
}

/** The index went back, and with it what is in flight. */
export function rollBackConnection(connection: Connection, to: Position, window: DeliveryWindow): void {
  connection.repeatedUpTo = minOf(connection.repeatedUpTo, to);
  connection.readUpTo = minOf(connection.readUpTo, to);
  connection.peer.rolledBack?.(to);
  for (const ticket of connection.held) if (window.find(ticket) === undefined) connection.held.delete(ticket);
}

/** Whether the peer may be given another event. */
export function hasRoom({ peer, windowMax, held, outgoing }: Connection): boolean {
  return held.size < windowMax && peer.hasRoom && outgoing.size < outgoingMax;
}

/**
 * Whether the peer may be given another event of a share. What an earlier connection did not acknowledge counts too, though this one may not have it
 * yet: else the window would grow with each connection.
 */
export function hasRoomBeside(connection: Connection | undefined, inFlightCount: number): boolean {
  if (connection?.reading === undefined || !hasRoom(connection)) return false;
  return inFlightCount < connection.windowMax;
}
