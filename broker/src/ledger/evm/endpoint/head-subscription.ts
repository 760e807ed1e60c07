import type { Logger } from "../../../lib/logger.ts";
import { readHeader } from "./rpc.ts";
import type { Notification, RpcCall } from "./connection.ts";
import type { Clock } from "../../../ports/clock.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import type { Endpoint } from "./endpoint.ts";

/** Pause after an endpoint refused the subscription, before it is asked for one again, in milliseconds. The loss of its connection ends the pause. */
const refusedMs = 60_000;

export interface HeadSubscriptionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ask: (endpoint: Endpoint, call: RpcCall) => Promise<unknown>;
  readonly askAny: (call: RpcCall) => Promise<unknown>;
}

/** The endpoint that serves the subscription, and the endpoint's identifier for it. */
interface Place {
  readonly endpoint: Endpoint;
  readonly id: unknown;
}

/**
 * The subscription to new heads, which outlasts its connections: it is renewed when the endpoint in use changes or the connection is lost. While it is
 * detached, the subscriber polls. A head may be notified twice.
 */
export class HeadSubscription {
  readonly #options: HeadSubscriptionOptions;
  #listener: ((head: unknown) => void) | undefined;
  /** Undefined while the subscription is detached. */
  #place: Place | undefined;
  /** The endpoint that refused the subscription last, and until when that endpoint is not asked again. */
  #refusal: { readonly endpoint: Endpoint; readonly until: number } | undefined;
  /** The newest block that was reported since the subscription was attached; -1 before the first. */
  #head = -1;
  #isMoving = false;

  constructor(options: HeadSubscriptionOptions) {
    this.#options = options;
  }

  /** Whether no endpoint announces heads to a subscriber. */
  get isDetached(): boolean {
    return this.#listener !== undefined && this.#place === undefined;
  }

  /** Whether the subscription is detached, and no endpoint has refused it lately. */
  get isRenewable(): boolean {
    return this.isDetached && this.#refusal === undefined;
  }

  /** Subscribes at this endpoint; if that fails, later. Returns a function that ends the subscription and never rejects. One subscriber at a time. */
  async start(listener: (head: unknown) => void, endpoint: Endpoint): Promise<() => Promise<void>> {
    this.#listener = listener;
    this.#refusal = undefined;
    this.#isMoving = true;
    await this.#tryAttach(endpoint);
    return async () => {
      this.close();
      await this.#release();
    };
  }

  onNotification(endpoint: Endpoint, { subscription, result }: Notification): void {
    if (this.#place?.endpoint === endpoint && this.#place.id === subscription) this.#notify(result);
  }

  onLost(endpoint: Endpoint): void {
    if (this.#place?.endpoint === endpoint) this.#place = undefined;
    if (this.#refusal?.endpoint === endpoint) this.#refusal = undefined;
  }

  /** Moves the subscription to this endpoint, detaches it if the endpoint cannot notify, and reports a newest block that it missed. Never rejects. */
  async refresh(endpoint: Endpoint): Promise<void> {
    if (this.#listener === undefined) return;
    if (this.#place?.endpoint !== endpoint) await this.#reattach(endpoint);
    else if ((endpoint.head ?? -1) > this.#head) await this.#notifyNewest();
  }

  /** Reports no further heads. */
  close(): void {
    this.#listener = undefined;
  }

  async #reattach(endpoint: Endpoint): Promise<void> {
    if (this.#isMoving) return;
    this.#isMoving = true;
    await this.#release();
    await this.#tryAttach(endpoint);
    if (this.#place !== undefined) await this.#notifyNewest();
  }

  /** Attaches the subscription unless the endpoint cannot notify, is on hold or refused it lately. Never rejects. */
  async #tryAttach(endpoint: Endpoint): Promise<void> {
    try {
      await this.#attach(endpoint);
    } catch (error) {
      if (error instanceof RpcAnswerError) this.#onRefusal(endpoint, error);
      else this.#options.logger.debug("chain subscription not renewed", { endpoint: endpoint.name, error });
    } finally {
      this.#isMoving = false;
    }
  }

  async #attach(endpoint: Endpoint): Promise<void> {
    if (this.#refusal?.endpoint !== endpoint) this.#refusal = undefined;
    else if (this.#options.clock.monotonic() < this.#refusal.until) return;
    const listener = this.#listener;
    // A request opens the connection: an endpoint that asked for a pause must not get a handshake either.
    if (listener === undefined || !endpoint.connection.canNotify || endpoint.isHeld) return;
    const id = await this.#options.ask(endpoint, { method: "eth_subscribe", params: ["newHeads"] });
    this.#refusal = undefined;
    this.#head = -1; // The earlier endpoint may have been on another branch, or on another chain.
    // The subscriber may have ended meanwhile, and the next one may have subscribed already.
    if (this.#listener === listener && this.#place === undefined) this.#place = { endpoint, id };
    else await this.#unsubscribe({ endpoint, id });
  }

  #onRefusal(endpoint: Endpoint, error: RpcAnswerError): void {
    const { clock, logger } = this.#options;
    const level = this.#refusal === undefined ? "info" : "debug"; // A chain node without subscriptions refuses each attempt.
    this.#refusal = { endpoint, until: clock.monotonic() + refusedMs };
    logger[level]("chain endpoint refused the subscription, polling it", { endpoint: endpoint.name, error });
  }

  async #release(): Promise<void> {
    const place = this.#place;
    this.#place = undefined;
    if (place !== undefined && place.endpoint.reason === undefined) await this.#unsubscribe(place);
  }

  /** Never rejects. */
  async #unsubscribe({ endpoint, id }: Place): Promise<void> {
    try {
      await this.#options.ask(endpoint, { method: "eth_unsubscribe", params: [id] });
    } catch (error) {
      this.#options.logger.debug("chain subscription not ended", { endpoint: endpoint.name, error });
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
