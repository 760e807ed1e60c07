import { createDeferred } from "../../../lib/deferred.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";

type Request = Parameters<EvmProvider["request"]>[0];

/** Intercepts requests: it may answer, throw, or pass a request on. */
export type Interceptor = (request: Request, pass: () => Promise<unknown>) => Promise<unknown>;

export const passAll: Interceptor = async (_, pass) => pass();

/** A network: requests go through `current`; notifications arrive unless it `isSilent`. */
export class InterceptedProvider implements EvmProvider {
  current: Interceptor = passAll;
  isSilent = false;
  /** What a chain in this process hands over; an endpoint has none. */
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
    const wrapped = (message: unknown): void => (this.isSilent ? undefined : listener(message));
    this.#listeners.set(listener, wrapped);
    this.#provider.on?.(event, wrapped);
  }

  removeListener(event: "message", listener: (message: unknown) => void): void {
    this.#provider.removeListener?.(event, this.#listeners.get(listener) ?? listener);
  }
}

/** The endpoint was never reached. */
export function connectionRefused(): Error {
  return new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
}

/** The endpoint may have been reached: there was no answer. */
export function connectionLost(): Error {
  return new TypeError("fetch failed");
}
