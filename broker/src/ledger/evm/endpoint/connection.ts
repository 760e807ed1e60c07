/** One JSON-RPC request, before it has an id. */
export interface RpcCall {
  readonly method: string;
  readonly params?: readonly unknown[];
}

/** What an endpoint notifies of: the `params` of an `eth_subscription`. */
export interface Notification {
  readonly subscription: unknown;
  readonly result: unknown;
}

/** What a connection tells by itself. */
export interface ConnectionEvents {
  readonly onNotification: (notification: Notification) => void;
  /** An open connection is gone, and its subscriptions with it. */
  readonly onLost: (reason: string) => void;
}

/** The way to one endpoint. It connects when it is first asked, and again after it was lost. Each request has its time. */
export interface Connection {
  /** The endpoint's address as it may be shown. */
  readonly name: string;
  /** Whether `eth_subscribe` can be asked here. */
  readonly canNotify: boolean;
  /** @throws RpcAnswerError the endpoint's own refusal; EndpointError when there is no answer. */
  request(call: RpcCall): Promise<unknown>;
  /** Asks them in their order, of one node as far as a connection can tell. Fails when one of them does. */
  requestAll(calls: readonly RpcCall[]): Promise<readonly unknown[]>;
  /** Ends for good; what is under way fails. */
  close(): Promise<void>;
}
