import { createDeferred } from "../../../lib/deferred.ts";
import { EndpointError } from "../endpoint/endpoint-error.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";

type Request = Parameters<EvmProvider["request"]>[0];

/** Intercepts requests: it may answer, throw, or pass a request on. */
export type Interceptor = (request: Request, pass: () => Promise<unknown>) => Promise<unknown>;

/** The part of the embedded chain that notifies (EIP-1193). */
interface Notifier {
  on(event: "message", listener: (message: unknown) => void): unknown;
  removeListener(event: "message", listener: (message: unknown) => void): unknown;
}

export const passAll: Interceptor = async (_, pass) => pass();

/** Passes requests through `current`, and notifications unless it `dropsNotifications`. */
export class InterceptedProvider implements EvmProvider {
  current: Interceptor = passAll;
  dropsNotifications = false;
  /** Reads blocks of the embedded chain; undefined for an endpoint. */
  readBlocks?: NonNullable<EvmProvider["readBlocks"]>;
  /** Announces the heads of the embedded chain; undefined for an endpoint. */
  readonly subscribeHeads?: NonNullable<EvmProvider["subscribeHeads"]>;
  readonly #provider: EvmProvider;

  constructor(provider: EvmProvider & Partial<Notifier>) {
    this.#provider = provider;
    const { on, removeListener } = provider;
    if (on === undefined || removeListener === undefined) return;
    const notifier = { on: on.bind(provider), removeListener: removeListener.bind(provider) };
    this.subscribeHeads = (listener) => this.#subscribeHeads(notifier, listener);
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

  async #subscribeHeads(chain: Notifier, listener: (head: unknown) => void): Promise<() => Promise<void>> {
    const id = await this.#provider.request({ method: "eth_subscribe", params: ["newHeads"] });
    const onMessage = (message: unknown): void => {
      const { data } = message as { readonly data: { readonly subscription: unknown; readonly result: unknown } }; // EIP-1193.
      if (data.subscription === id && !this.dropsNotifications) listener(data.result);
    };
    chain.on("message", onMessage);
    return async () => {
      chain.removeListener("message", onMessage);
      await this.#provider.request({ method: "eth_unsubscribe", params: [id] });
    };
  }
}

/** The error of a request that did not reach the endpoint. */
export function connectionRefused(): Error {
  return new EndpointError("http://node: connection refused", { reach: "unreached" });
}

/** The error of a request without an answer; the endpoint may have processed it. */
export function connectionLost(): Error {
  return new TypeError("fetch failed");
}
