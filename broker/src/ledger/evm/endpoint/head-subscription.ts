import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { readHeader } from "./rpc.ts";
import type { Notification, RpcCall } from "./connection.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import type { Endpoint } from "./endpoint.ts";

const method = "eth_subscribe";

export interface HeadSubscriptionOptions {
  readonly logger: Logger;
  /** The endpoint in use. */
  readonly current: () => Endpoint;
  readonly ask: (endpoint: Endpoint, call: RpcCall) => Promise<unknown>;
  readonly askAny: (call: RpcCall) => Promise<unknown>;
}

/**
 * The subscription to new heads, at the endpoint in use. An endpoint keeps its subscription until its connection is lost, even while another endpoint is in
 * use. While the endpoint in use has none, the subscriber polls. A head may be notified twice.
 */
export class HeadSubscription {
  readonly #options: HeadSubscriptionOptions;
  readonly #refused: ReportedTrouble;
  #listener: ((head: unknown) => void) | undefined;
  /** The endpoints' identifiers for their subscriptions. */
  readonly #ids = new Map<Endpoint, unknown>();
  /** The newest block that was reported since the endpoint in use changed or was subscribed to; -1 before the first. */
  #head = -1;
  /** Endpoints whose answer is awaited: one that is silent must not delay the subscription at the next. */
  readonly #asked = new Set<Endpoint>();

  constructor(options: HeadSubscriptionOptions) {
    this.#options = options;
    this.#refused = new ReportedTrouble(options.logger, "chain endpoint gave no subscription, polling it");
  }

  /** Whether the endpoint in use announces heads. */
  get isAttached(): boolean {
    return this.#ids.has(this.#options.current());
  }

  /** Subscribes at the endpoint in use; if that fails, {@link refresh} does. Returns a function that ends the reports and never rejects. One subscriber at a time. */
  async start(listener: (head: unknown) => void): Promise<() => Promise<void>> {
    this.#listener = listener;
    this.#head = -1;
    await this.#attach();
    return async () => this.close();
  }

  onNotification(endpoint: Endpoint, { subscription, result }: Notification): void {
    const isCurrent = this.isAttached && endpoint === this.#options.current();
    if (isCurrent && this.#ids.get(endpoint) === subscription) this.#notify(result);
  }

  onLost(endpoint: Endpoint): void {
    this.#ids.delete(endpoint);
  }

  /** Call it when another endpoint is in use: the earlier one may have been on another branch, or on another chain. */
  async onMoved(): Promise<void> {
    this.#head = -1;
    await this.refresh();
  }

  /** Call it regularly. Subscribes at the endpoint in use if it is not attached, and reports a newest block that the subscription missed. Never rejects. */
  async refresh(): Promise<void> {
    await this.#attach();
    const { head = -1 } = this.#options.current();
    if (this.#listener !== undefined && this.isAttached && head > this.#head) await this.#notifyNewest();
  }

  /** Reports no further heads. */
  close(): void {
    this.#listener = undefined;
  }

  /**
   * Subscribes, unless the endpoint cannot notify or is on hold: the request might open a connection, which a requested pause also forbids. Does not ask an
   * endpoint that lost the last such requests: if it closes the connection instead of answering, all requests on that connection fail. Never rejects.
   */
  async #attach(): Promise<void> {
    const { current, ask, logger } = this.#options;
    const endpoint = current();
    const isDue = this.#listener !== undefined && !this.#ids.has(endpoint) && !this.#asked.has(endpoint);
    if (!isDue || !endpoint.connection.canNotify || endpoint.isHeld || endpoint.isLate(method)) return;
    this.#asked.add(endpoint);
    try {
      this.#ids.set(endpoint, await ask(endpoint, { method, params: ["newHeads"] }));
      if (endpoint !== current()) return;
      this.#head = -1;
      this.#refused.done();
    } catch (error) {
      const fields = { endpoint: endpoint.name };
      const isRefused = error instanceof RpcAnswerError || endpoint.isLate(method);
      if (isRefused && endpoint === current()) this.#refused.failed(error, fields);
      else logger.debug("chain subscription not renewed", { ...fields, error });
    } finally {
      this.#asked.delete(endpoint);
    }
  }

  /** Reports the newest block, since the subscription may have missed heads while it was detached or silent. */
  async #notifyNewest(): Promise<void> {
    try {
      this.#notify(await this.#options.askAny({ method: "eth_getBlockByNumber", params: ["latest", false] }));
    } catch (error) {
      if (!(error instanceof EndpointError)) this.#options.logger.debug("chain head not read", { error });
    }
  }

  #notify(head: unknown): void {
    this.#head = Math.max(this.#head, numberOf(head));
    this.#listener?.(head);
  }
}

function numberOf(head: unknown): number {
  try {
    return readHeader(head).number;
  } catch {
    return -1;
  }
}
