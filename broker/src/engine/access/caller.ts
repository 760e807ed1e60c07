/** Who stands behind a call or a subscription. Nobody has to say who they are yet. */
export interface Principal {
  readonly kind: "anonymous";
}

export const anonymous: Principal = { kind: "anonymous" };

/** How a call reached the broker. */
export type Protocol = "REST" | "JSON-RPC" | "MQTT" | "admin" | "chain";

/** Who calls, and from where. A listener makes one for each connection, not for each call. */
export interface Caller {
  readonly principal: Principal;
  /** IP address of the peer, as the listener sees it: behind a proxy, the proxy's. Undefined when the connection ended first. */
  readonly address: string | undefined;
  readonly protocol: Protocol;
  /** Aborts when the connection has ended, so that nobody reads an answer any more. */
  readonly signal: AbortSignal;
}
