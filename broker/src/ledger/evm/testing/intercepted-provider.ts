import { createDeferred } from "../../../lib/deferred.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";

type Request = Parameters<EvmProvider["request"]>[0];

/** Intercepts requests: it may answer, throw, or pass a request on. */
export type Interceptor = (request: Request, pass: () => Promise<unknown>) => Promise<unknown>;

export const passAll: Interceptor = async (_, pass) => pass();

/** Passes requests through `current`, and notifications unless it `dropsNotifications`. */
export class InterceptedProvider implements EvmProvider {
  current: Interceptor = passAll;
  dropsNotifications = false;
  /** Reads blocks of the embedded chain; undefined for an endpoint. */
  readBlocks?: NonNullable<EvmProvider["readBlocks"]>;
  readonly #provider: EvmProvider;
  readonly #listeners = new Map<(message: unknown) => void, (message: unknown) => void>();

  constructor(provider: EvmProvider) {
    this.#provider = provider;
  }

  async request(request: Request): Promise<unknown> {
    return this.current(request, async () => this.#provider.request(request));
  }

  /** Holds sent transactions until the returned function is called; other requests pass. */
  holdSends(): () => void {
    const { current } = this;
    const released = createDeferred<void>();
    this.current = async (request, pass) => {
      if (request.method === "eth_sendRawTransaction") await released.promise;
      return current(request, pass);
    };
    return () => {
      this.current = current;
      released.resolve();
    };
  }

  on(event: "message", listener: (message: unknown) => void): void {
    const wrapped = (message: unknown): void => (this.dropsNotifications ? undefined : listener(message));
    this.#listeners.set(listener, wrapped);
    this.#provider.on?.(event, wrapped);
  }

  removeListener(event: "message", listener: (message: unknown) => void): void {
    this.#provider.removeListener?.(event, this.#listeners.get(listener) ?? listener);
  }
}

/** The error of a request that did not reach the endpoint. */
export function connectionRefused(): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
}

/** The error of a request without an answer; the endpoint may have processed it. */
export function connectionLost(): Error {
  return new TypeError("fetch failed");
}
