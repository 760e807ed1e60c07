import type { WebSocket } from "ws";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";

/** One WebSocket connection, as its protocol gets it. */
export interface UpgradedConnection {
  readonly webSocket: WebSocket;
  readonly caller: Caller;
}

/** A protocol that speaks over WebSocket connections of the HTTP port. */
export interface UpgradeRoute {
  /** Path below `basePath`, such as `/mqtt`. */
  readonly path: string;
  readonly protocol: Protocol;
  /** In order of preference: the first one that the client offers is used. A client that offers only others is refused (RFC 6455, section 4.2.2). */
  readonly subprotocols: readonly [string, ...string[]];
  /** Whether a client that offers no subprotocol is refused too. */
  readonly needsSubprotocol: boolean;
  /** Longest message, in bytes; a longer one ends its connection with close code 1009. */
  readonly messageBytesMax: number;
  /** Serves a connection. Called in the turn of the event loop in which the connection is upgraded. */
  accept(connection: UpgradedConnection): void;
  /** Ends every connection of the protocol, with its goodbye if the protocol has one. */
  endAll(): Promise<void>;
}
