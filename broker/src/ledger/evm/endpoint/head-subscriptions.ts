import type { Logger } from "../../../lib/logger.ts";
import { readHeader } from "./rpc.ts";
import type { Notification, RpcCall } from "./connection.ts";
import type { Clock } from "../../../ports/clock.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import type { Member } from "./member.ts";

/** Pause after an endpoint refused a subscription, before it is asked for one again, in milliseconds. The loss of its connection ends the pause. */
const refusedMs = 60_000;

export interface HeadSubscriptionsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ask: (member: Member, call: RpcCall) => Promise<unknown>;
  readonly askAny: (call: RpcCall) => Promise<unknown>;
}

interface Subscription {
  readonly id: string;
  readonly params: readonly unknown[];
  /** The endpoint that serves the subscription, and the endpoint's identifier for it; undefined while the subscription is detached. */
  place: { readonly member: Member; readonly id: unknown } | undefined;
  /** The endpoint that refused the subscription last, and until when that endpoint is not asked again. */
  refusal: { readonly member: Member; readonly until: number } | undefined;
  /** The newest block that was reported for the subscription; -1 before the first. */
  head: number;
  isMoving: boolean;
}

/**
 * Subscriptions that outlast their connections. Each keeps one identifier, and is renewed when the endpoint in use changes or the connection
 * is lost. While a subscription is detached, the subscriber polls. A head may be notified twice.
 */
export class HeadSubscriptions {
  readonly listeners = new Set<(message: unknown) => void>();
  readonly #options: HeadSubscriptionsOptions;
  readonly #subscriptions = new Map<string, Subscription>();
  #count = 0;
  #isClosed = false;

  constructor(options: HeadSubscriptionsOptions) {
    this.#options = options;
  }

  /** Whether a subscription is detached, so that no endpoint announces its heads. */
  get isDetached(): boolean {
    return [...this.#subscriptions.values()].some(({ place }) => place === undefined);
  }

  /** Whether a subscription is detached, and no endpoint has refused it lately. */
  get isRenewable(): boolean {
    return [...this.#subscriptions.values()].some(({ place, refusal }) => place === undefined && refusal === undefined);
  }

  /** Subscribes at this endpoint. If it fails, the subscription is detached and attached later. */
  async subscribe(params: readonly unknown[], member: Member): Promise<string> {
    this.#count += 1;
    const id = `0x${this.#count.toString(16)}`;
    const subscription: Subscription = {
      id,
      params,
      place: undefined,
      refusal: undefined,
      head: -1,
      isMoving: true,
    };
    this.#subscriptions.set(id, subscription);
    await this.#tryAttach(subscription, member);
    return id;
  }

  async unsubscribe(id: unknown): Promise<boolean> {
    const subscription = typeof id === "string" ? this.#subscriptions.get(id) : undefined;
    if (subscription === undefined) return false;
    this.#subscriptions.delete(subscription.id);
    await this.#release(subscription);
    return true;
  }

  onNotification(member: Member, { subscription: id, result }: Notification): void {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.place?.member === member && subscription.place.id === id) this.#notify(subscription, result);
    }
  }

  onLost(member: Member): void {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.place?.member === member) subscription.place = undefined;
      if (subscription.refusal?.member === member) subscription.refusal = undefined;
    }
  }

  /** Moves the subscriptions to the endpoint that is now in use. */
  move(member: Member): void {
    void this.refresh(member);
  }

  /** Moves all subscriptions to this endpoint, detaches them if the endpoint cannot notify, and reports a newest block that they missed. Never rejects. */
  async refresh(member: Member): Promise<void> {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.place?.member !== member) await this.#reattach(subscription, member);
      else if ((member.head ?? -1) > subscription.head) await this.#notifyNewest(subscription);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#subscriptions.clear();
  }

  async #reattach(subscription: Subscription, member: Member): Promise<void> {
    if (subscription.isMoving) return;
    subscription.isMoving = true;
    await this.#release(subscription);
    await this.#tryAttach(subscription, member);
    if (subscription.place !== undefined) await this.#notifyNewest(subscription);
  }

  /** Attaches a subscription unless the endpoint cannot notify or refused it lately. Never rejects. */
  async #tryAttach(subscription: Subscription, member: Member): Promise<void> {
    const { logger } = this.#options;
    try {
      await this.#attach(subscription, member);
    } catch (error) {
      if (error instanceof RpcAnswerError) this.#onRefusal(subscription, { member, error });
      else logger.debug("chain subscription not renewed", { endpoint: member.name, error });
    } finally {
      subscription.isMoving = false;
    }
  }

  async #attach(subscription: Subscription, member: Member): Promise<void> {
    const { refusal } = subscription;
    if (refusal?.member !== member) subscription.refusal = undefined;
    else if (this.#options.clock.monotonic() < refusal.until) return;
    if (!member.connection.canNotify) return;
    const id = await this.#options.ask(member, { method: "eth_subscribe", params: subscription.params });
    subscription.refusal = undefined;
    subscription.place = { member, id };
  }

  #onRefusal(
    subscription: Subscription,
    { member, error }: { readonly member: Member; readonly error: RpcAnswerError },
  ): void {
    const { clock, logger } = this.#options;
    const level = subscription.refusal === undefined ? "info" : "debug"; // A chain node without subscriptions refuses each attempt.
    subscription.refusal = { member, until: clock.monotonic() + refusedMs };
    logger[level]("chain endpoint refused the subscription, polling it", { endpoint: member.name, error });
  }

  async #release(subscription: Subscription): Promise<void> {
    const { place } = subscription;
    subscription.place = undefined;
    if (place === undefined || place.member.reason !== undefined) return;
    try {
      await this.#options.ask(place.member, { method: "eth_unsubscribe", params: [place.id] });
    } catch (error) {
      this.#options.logger.debug("chain subscription not ended", { endpoint: place.member.name, error });
    }
  }

  /** Reports the newest block, since the subscription may have missed heads while it was detached or silent. */
  async #notifyNewest(subscription: Subscription): Promise<void> {
    if (subscription.params[0] !== "newHeads") return;
    try {
      this.#notify(
        subscription,
        await this.#options.askAny({ method: "eth_getBlockByNumber", params: ["latest", false] }),
      );
    } catch (error) {
      if (!(error instanceof EndpointError)) this.#options.logger.debug("chain head not read", { error });
    }
  }

  #notify(subscription: Subscription, result: unknown): void {
    if (this.#isClosed) return;
    if (subscription.params[0] === "newHeads") subscription.head = Math.max(subscription.head, numberOf(result));
    const message = { type: "eth_subscription", data: { subscription: subscription.id, result } };
    for (const listener of this.listeners) listener(message);
  }
}

function numberOf(head: unknown): number {
  try {
    return readHeader(head).number;
  } catch {
    return -1;
  }
}
