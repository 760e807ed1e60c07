import type { WebSocket } from "ws";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";
import type { Holding } from "../../in-flight/memory-budget.ts";

/** One WebSocket connection, as its protocol gets it. */
export interface UpgradedConnection {
  readonly webSocket: WebSocket;
  readonly caller: Caller;
  /** Memory of the connection, out of the budget that all requests share; it is given back when the connection ends. */
  readonly findHolding: () => Holding;
}

/** A protocol that speaks over WebSocket connections of the HTTP port. */
export interface UpgradeRoute {
  /** Below the context segment, such as `/mqtt`. */
  readonly path: string;
  readonly protocol: Protocol;
  /** Of those that a client offers, the first of these is chosen; a client that offers none is refused (RFC 6455, section 4.2.2). */
  readonly subprotocols: readonly [string, ...string[]];
  /** Longest message; a longer one ends its connection with close code 1009. */
  readonly messageBytesMax: number;
  /** Takes a connection over, in the turn in which it is upgraded. */
  accept(connection: UpgradedConnection): void;
}
