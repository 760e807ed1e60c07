import type { WebSocket } from "ws";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";

/** One WebSocket connection, as its protocol gets it. */
export interface UpgradedConnection {
  readonly webSocket: WebSocket;
  readonly caller: Caller;
}

/** A protocol that speaks over WebSocket connections of the HTTP port. */
export interface UpgradeRoute {
  /** Below the context segment, such as `/mqtt`. */
  readonly path: string;
  readonly protocol: Protocol;
  /** Of those that a client offers, the first of these is chosen; a client that offers others alone is refused (RFC 6455, section 4.2.2). */
  readonly subprotocols: readonly [string, ...string[]];
  /** Whether a client that offers none is refused too. */
  readonly needsSubprotocol: boolean;
  /** Longest message; a longer one ends its connection with close code 1009. */
  readonly messageBytesMax: number;
  /** Takes a connection over, in the turn in which it is upgraded. */
  accept(connection: UpgradedConnection): void;
}
