import type { Logger } from "../../../lib/logger.ts";
import { readHeader } from "./rpc.ts";
import type { Notification, RpcCall } from "./connection.ts";
import { EndpointError } from "./endpoint-error.ts";
import type { Member } from "./member.ts";

export interface HeadSubscriptionsOptions {
  readonly logger: Logger;
  readonly ask: (member: Member, call: RpcCall) => Promise<unknown>;
  readonly askAny: (call: RpcCall) => Promise<unknown>;
}

interface Subscription {
  readonly id: string;
  readonly params: readonly unknown[];
  /** The endpoint that serves the subscription, and the endpoint's identifier for it; undefined while it is detached. */
  place: { readonly member: Member; readonly id: unknown } | undefined;
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

  async subscribe(params: readonly unknown[], member: Member): Promise<string> {
    this.#count += 1;
    const id = `0x${this.#count.toString(16)}`;
    const subscription: Subscription = { id, params, place: undefined, head: -1, isMoving: false };
    await this.#attach(subscription, member);
    this.#subscriptions.set(subscription.id, subscription);
    return subscription.id;
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
    }
  }

  /** Moves the subscriptions to the endpoint that is now in use. */
  move(member: Member): void {
    void this.refresh(member);
  }

  /** Moves all subscriptions to this endpoint, detaches them if it cannot notify, and reports a newest block that they missed. Never rejects. */
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

  async #attach(subscription: Subscription, member: Member): Promise<void> {
    if (!member.connection.canNotify) return;
    const id = await this.#options.ask(member, { method: "eth_subscribe", params: subscription.params });
    subscription.place = { member, id };
  }

  async #reattach(subscription: Subscription, member: Member): Promise<void> {
    if (subscription.isMoving) return;
    subscription.isMoving = true;
    await this.#release(subscription);
    try {
      await this.#attach(subscription, member);
    } catch (error) {
      this.#options.logger.debug("chain subscription not renewed", { endpoint: member.name, error });
    } finally {
      subscription.isMoving = false;
    }
    if (subscription.place !== undefined) await this.#notifyNewest(subscription);
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
