import type { Logger } from "../../../lib/logger.ts";
import { readHeader } from "./rpc.ts";
import type { Notification, RpcCall } from "./connection.ts";
import type { Clock } from "../../../ports/clock.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import type { Member } from "./member.ts";

/** Pause after an endpoint refused the subscription, before it is asked for one again, in milliseconds. The loss of its connection ends the pause. */
const refusedMs = 60_000;

export interface HeadSubscriptionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ask: (member: Member, call: RpcCall) => Promise<unknown>;
  readonly askAny: (call: RpcCall) => Promise<unknown>;
}

/**
 * The subscription to new heads, which outlasts its connections: it is renewed when the endpoint in use changes or the connection is lost. While it is
 * detached, the subscriber polls. A head may be notified twice.
 */
export class HeadSubscription {
  readonly #options: HeadSubscriptionOptions;
  #listener: ((head: unknown) => void) | undefined;
  /** The endpoint that serves the subscription, and the endpoint's identifier for it; undefined while the subscription is detached. */
  #place: { readonly member: Member; readonly id: unknown } | undefined;
  /** The endpoint that refused the subscription last, and until when that endpoint is not asked again. */
  #refusal: { readonly member: Member; readonly until: number } | undefined;
  /** The newest block that was reported; -1 before the first. */
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

  /** Subscribes at this endpoint; if that fails, later. Returns a function that ends the subscription and never rejects. */
  async start(listener: (head: unknown) => void, member: Member): Promise<() => Promise<void>> {
    this.#listener = listener;
    this.#isMoving = true;
    await this.#tryAttach(member);
    return async () => {
      this.close();
      await this.#release();
    };
  }

  onNotification(member: Member, { subscription, result }: Notification): void {
    if (this.#place?.member === member && this.#place.id === subscription) this.#notify(result);
  }

  onLost(member: Member): void {
    if (this.#place?.member === member) this.#place = undefined;
    if (this.#refusal?.member === member) this.#refusal = undefined;
  }

  /** Moves the subscription to this endpoint, detaches it if the endpoint cannot notify, and reports a newest block that it missed. Never rejects. */
  async refresh(member: Member): Promise<void> {
    if (this.#listener === undefined) return;
    if (this.#place?.member !== member) await this.#reattach(member);
    else if ((member.head ?? -1) > this.#head) await this.#notifyNewest();
  }

  /** Reports no further heads. */
  close(): void {
    this.#listener = undefined;
  }

  async #reattach(member: Member): Promise<void> {
    if (this.#isMoving) return;
    this.#isMoving = true;
    await this.#release();
    await this.#tryAttach(member);
    if (this.#place !== undefined) await this.#notifyNewest();
  }

  /** Attaches the subscription unless the endpoint cannot notify or refused it lately. Never rejects. */
  async #tryAttach(member: Member): Promise<void> {
    try {
      await this.#attach(member);
    } catch (error) {
      if (error instanceof RpcAnswerError) this.#onRefusal(member, error);
      else this.#options.logger.debug("chain subscription not renewed", { endpoint: member.name, error });
    } finally {
      this.#isMoving = false;
    }
  }

  async #attach(member: Member): Promise<void> {
    if (this.#refusal?.member !== member) this.#refusal = undefined;
    else if (this.#options.clock.monotonic() < this.#refusal.until) return;
    if (!member.connection.canNotify) return;
    const id = await this.#options.ask(member, { method: "eth_subscribe", params: ["newHeads"] });
    this.#refusal = undefined;
    this.#place = { member, id };
  }

  #onRefusal(member: Member, error: RpcAnswerError): void {
    const { clock, logger } = this.#options;
    const level = this.#refusal === undefined ? "info" : "debug"; // A chain node without subscriptions refuses each attempt.
    this.#refusal = { member, until: clock.monotonic() + refusedMs };
    logger[level]("chain endpoint refused the subscription, polling it", { endpoint: member.name, error });
  }

  async #release(): Promise<void> {
    const place = this.#place;
    this.#place = undefined;
    if (place === undefined || place.member.reason !== undefined) return;
    try {
      await this.#options.ask(place.member, { method: "eth_unsubscribe", params: [place.id] });
    } catch (error) {
      this.#options.logger.debug("chain subscription not ended", { endpoint: place.member.name, error });
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
