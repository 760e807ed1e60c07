/** How to reach a broker. */
export interface SteleOptions {
  /** Base URL, with the base path if one is set: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Base URL of the admin API, if it has its own port (`adminPort`). The same as `url` if left out. */
  readonly adminUrl?: string | undefined;
  /** Key or token that the broker asks for. The client calls a function for each request, so that the function can renew a token. */
  readonly key?: string | (() => string | Promise<string>) | undefined;
  /** Group of every call that names none. The broker's default group if left out. */
  readonly groupId?: string | undefined;
  /** Prefix of the broker's extensions. `svc-` if left out. */
  readonly extensionPrefix?: string | undefined;
  /** How often the client repeats a failed call where that is safe. 4 if left out. */
  readonly retries?: number | undefined;
  /** Time limit of each try, in milliseconds. 60,000 if left out; Infinity for none. */
  readonly timeoutMs?: number | undefined;
  /** Sends the requests instead of the global `fetch`: for a proxy, client certificates, or tests. */
  readonly fetch?: typeof fetch | undefined;
}

/** Options of every call. */
export interface CallOptions {
  readonly groupId?: string | undefined;
  /** Ends the call once the signal is aborted: the call throws the reason of the signal. A request that was sent may still take effect. */
  readonly signal?: AbortSignal | undefined;
  /** Header of W3C Trace Context; every try of the call carries it. */
  readonly traceparent?: string | undefined;
}
