import type { DeliveryWindow, InFlight, Ticket } from "../../domain/delivery-window.ts";
import { minOf, type Position } from "../../domain/position.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { Outgoing } from "./outgoing.ts";
import type { Peer } from "./peer.ts";

/** Events that may wait for a write, in front of a peer that has room. */
const outgoingMax = 1_000;

/** A peer with what feeds it. */
export interface Connection {
  readonly peer: Peer;
  readonly windowMax: number;
  /** What the peer is given from; undefined while the index rolls back. */
  reading: Reading | undefined;
  /** Where the next feed begins. */
  readUpTo: Position;
  readonly outgoing: Outgoing;
  /** What this peer has and has not acknowledged. */
  readonly held: Set<Ticket>;
  /** Events up to here were given to an earlier connection, or passed. */
  repeatedUpTo: Position;
  readonly repeats: ReadonlyMap<Position, InFlight>;
}

/** A feed, and the loop that gives its events to a peer. */
export interface Reading {
  readonly feed: Feed;
  readonly ending: AbortController;
  /** Never rejects. */
  readonly ended: Promise<unknown>;
}

/** The index went back, and with it what is in flight. */
export function rollBackConnection(connection: Connection, to: Position, window: DeliveryWindow): void {
  connection.repeatedUpTo = minOf(connection.repeatedUpTo, to);
  connection.readUpTo = minOf(connection.readUpTo, to);
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
export function hasRoomBeside(connection: Connection | undefined, window: DeliveryWindow): boolean {
  if (connection?.reading === undefined || !hasRoom(connection)) return false;
  return window.size < connection.windowMax;
}
