import type { Clock } from "../../../ports/clock.ts";

/** One JSON-RPC request, before it has an id. */
export interface RpcCall {
  readonly method: string;
  readonly params?: readonly unknown[];
  /** Whether the chain should have the data. If an endpoint returns null or an empty list, an {@link EndpointSet} asks the next one that answers. */
  readonly isPromised?: boolean | undefined;
}

/** A notification: the `params` of an `eth_subscription`. */
export interface Notification {
  readonly subscription: unknown;
  readonly result: unknown;
}

export interface ConnectionEvents {
  readonly onNotification: (notification: Notification) => void;
  /** A connection was lost, with its subscriptions, or could not be opened. Not called for a close that an HTTP answer announced. */
  readonly onLost: (reason: string) => void;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly events: ConnectionEvents;
  readonly timeoutMs?: number;
}

/** A connection to one endpoint. It connects at the first request, and again after a loss. Each request has a timeout. */
export interface Connection {
  /** The endpoint's address without secrets. */
  readonly name: string;
  /** Whether the connection can carry the notifications of `eth_subscribe`. */
  readonly canNotify: boolean;
  /** @throws RpcAnswerError if the endpoint refuses; EndpointError if it does not answer. */
  request(call: RpcCall): Promise<unknown>;
  /** Sends several requests in order, to one chain node unless a load balancer splits them. Fails if one of them fails. */
  requestAll(calls: readonly RpcCall[]): Promise<readonly unknown[]>;
  /** Closes the connection; pending requests fail. */
  close(): Promise<void>;
}
