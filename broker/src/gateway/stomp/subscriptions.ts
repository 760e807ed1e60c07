import { BrokerError, quote } from "@stele/wire";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker } from "../../engine/broker.ts";
import type { EndReason } from "../../engine/session/peer.ts";
import type { Outbox } from "../shared/connection/outbox.ts";
import { filterBytes } from "../shared/connection/filter-bytes.ts";
import { parameterError } from "../shared/failure.ts";
import { type ClientFrame, findHeader, type Headers, type Version } from "./codec/frame.ts";
import { connectionFiltersMax, connectionPrefetchMax, prefetchDefault, prefetchMax, prefetchMin } from "./limits.ts";
import { requireHeader } from "./mapping.ts";
import { requireName } from "./names.ts";
import type { StompSettings } from "./settings.ts";
import { type AckMode, ackModes, parseAckId, Subscription } from "./subscription.ts";

export interface SubscriptionsParts {
  readonly broker: Pick<Broker, "attach">;
  readonly caller: Caller;
  readonly version: Version;
  readonly settings: Pick<StompSettings, "extensionPrefix" | "subscriptionsMax" | "subscriptionExpirySeconds">;
  readonly outbox: Outbox;
  /** A UUID. */
  readonly newKey: () => string;
  readonly onEnded: (subscription: Subscription, why: EndReason) => void;
  readonly onSuspended: (subscription: Subscription) => void;
}

/** An event of a subscription that an ACK or NACK names. */
export interface Settled {
  readonly subscription: Subscription;
  /** The name by which the client settles the event. */
  readonly name: string;
}

/** The subscriptions of one connection. */
export class Subscriptions {
  readonly #parts: SubscriptionsParts;
  /** Open subscriptions by their names. */
  readonly #open = new Map<string, Subscription>();
  /** Names of subscriptions that have ended lately. Clients may still settle events of these. Keeps a name even if another subscription has it now. */
  readonly #ended = new Set<string>();
  #lastNumber = 0;
  #nameBytes = 0;
  #filterCount = 0;

  constructor(parts: SubscriptionsParts) {
    this.#parts = parts;
  }

  /** Bytes of the names and filters that are kept. */
  get keptBytes(): number {
    return this.#nameBytes + filterBytes(this.#filterCount);
  }

  /** Attaches a subscription; it takes events once it is opened. @throws BrokerError. */
  async subscribe({ headers }: ClientFrame): Promise<Subscription> {
    const { broker, caller, settings } = this.#parts;
    if (findHeader(headers, "selector") !== undefined) throw parameterError("selectors are not supported"); // without it, the client would get too many events
    const filters = requireHeader(headers, "destination").split(",");
    const subscription = this.#create(headers, filters);
    this.#checkNew(subscription);
    const { name, ackMode, isDurable, key, prefetch } = subscription.parts;
    const request = {
      groupId: findHeader(headers, "groupId"),
      protocol: "STOMP" as const,
      key,
      isClean: !isDurable,
      windowMax: prefetch,
      will: undefined,
      expiryMs: isDurable ? settings.subscriptionExpirySeconds * 1000 : 0,
      stream: {
        filters,
        acknowledges: ackMode !== "auto" || isDurable, // with `auto`, once the socket has taken the event
        offset: findHeader(headers, "eventId"),
      },
      onConnected: ({ session }: { readonly session: Parameters<Subscription["begin"]>[0] }) =>
        subscription.begin(session),
    };
    subscription.attached(await broker.attach(caller, request, subscription));
    this.#open.set(name, subscription);
    this.#nameBytes += name.length;
    this.#filterCount += filters.length;
    return subscription;
  }

  /** @throws BrokerError if there is no such subscription. */
  async unsubscribe({ headers }: ClientFrame): Promise<void> {
    const subscription = this.#findNamed(headers);
    this.#forget(subscription);
    await subscription.end();
  }

  /**
   * The event that an ACK or NACK names; undefined if the subscription has ended meanwhile, or if the event is already settled. @throws BrokerError
   * 200001 if a header is missing, or if the event was never sent to the client or is forgotten; 100504 if there is no such subscription.
   */
  find(headers: Headers): Settled | undefined {
    return this.#parts.version === "1.2" ? this.#findByAck(requireHeader(headers, "id")) : this.#findByMessage(headers);
  }

  /** Call it when the client can receive more. */
  wakeAll(): void {
    for (const subscription of this.#open.values()) subscription.wake();
  }

  /** Call it when the client reads no further events. */
  pauseAll(): void {
    for (const subscription of this.#open.values()) subscription.pause();
  }

  /** As {@link detachAll}, once the client has read what it was sent. Until then, another connection may take its subscriptions over. */
  async detachAllInTurn(): Promise<void> {
    await this.#parts.outbox.settled();
    await this.detachAll();
  }

  /** Call it when the client sends no more. Resolves once the places of durable subscriptions are in the store. */
  async detachAll(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map((one) => one.detach(this.#parts.settings.subscriptionExpirySeconds)));
  }

  #create(headers: Headers, filters: readonly string[]): Subscription {
    const { settings, version, outbox, newKey, onEnded, onSuspended } = this.#parts;
    const { extensionPrefix } = settings;
    const given = findHeader(headers, `${extensionPrefix}subscriptionId`);
    const ackMode = toAckMode(findHeader(headers, "ack") ?? "auto", version);
    this.#lastNumber += 1;
    const subscription: Subscription = new Subscription({
      name: this.#nameOf(headers),
      id: findHeader(headers, "id"),
      key: given === undefined ? newKey() : parseSubscriptionId(given),
      number: this.#lastNumber,
      ackMode,
      isDurable: given !== undefined,
      filters,
      prefetch: Math.min(toPrefetch(findHeader(headers, "prefetch-count"), ackMode), this.#findPrefetchLeft(ackMode)),
      version,
      extensionPrefix,
      outbox,
      onEnded: (why) => onEnded(subscription, why),
      onSuspended: () => onSuspended(subscription),
    });
    return subscription;
  }

  /** How many events a further subscription may leave unacknowledged. With `auto`, the room of the socket is the limit. */
  #findPrefetchLeft(ackMode: AckMode): number {
    if (ackMode === "auto") return prefetchMax;
    const acknowledged = [...this.#open.values()].filter(({ parts }) => parts.ackMode !== "auto");
    const taken = acknowledged.reduce((sum, { parts }) => sum + parts.prefetch, 0);
    return Math.max(prefetchMin, connectionPrefetchMax - taken);
  }

  #forget({ parts: { name, filters } }: Subscription): void {
    this.#open.delete(name);
    this.#nameBytes -= name.length;
    this.#filterCount -= filters.length;
    this.#remember(name);
  }

  #checkNew({ parts }: Subscription): void {
    const { subscriptionsMax } = this.#parts.settings;
    if (this.#open.has(parts.name)) {
      throw parameterError(`this connection has a subscription ${quote(parts.name)} already`);
    }
    if ([...this.#open.values()].some((known) => known.parts.key === parts.key)) {
      throw parameterError(`this connection has the subscription ${quote(parts.key)} already`);
    }
    if (this.#open.size >= subscriptionsMax) {
      throw new BrokerError("overQuota", { details: `this connection has ${subscriptionsMax} subscriptions` });
    }
    const filtersMax = Math.max(connectionFiltersMax, subscriptionsMax);
    if (this.#filterCount + parts.filters.length <= filtersMax) return;
    const details = `the subscriptions of a connection have at most ${filtersMax} filters`;
    throw new BrokerError("overQuota", { details });
  }

  /** The name of a subscription: its `id`, or its destination if it has none, which 1.0 allows. */
  #nameOf(headers: Headers): string {
    return requireName(headers, this.#lacksId(headers) ? "destination" : "id");
  }

  #lacksId(headers: Headers): boolean {
    return this.#parts.version === "1.0" && findHeader(headers, "id") === undefined;
  }

  /**
   * The subscription that an UNSUBSCRIBE names. In 1.0 the frame may give the destination even if the subscription has an `id`. @throws BrokerError
   * if there is no such subscription.
   */
  #findNamed(headers: Headers): Subscription {
    const name = this.#nameOf(headers);
    const found = this.#lacksId(headers) ? this.#findByDestination(name) : this.#open.get(name);
    if (found !== undefined) return found;
    throw new BrokerError("subscriptionNotExist", { details: `this connection has no subscription ${quote(name)}` });
  }

  /** The subscription with a destination. Prefers one without an `id`: the destination is its only name. */
  #findByDestination(destination: string): Subscription | undefined {
    const all = [...this.#open.values()].filter(({ parts }) => parts.filters.join(",") === destination);
    return all.find(({ parts }) => parts.id === undefined) ?? all[0];
  }

  #findByAck(id: string): Settled | undefined {
    const found = parseAckId(id);
    if (found === undefined || found.number > this.#lastNumber) throw neverSent(id);
    const { number, name } = found;
    for (const subscription of this.#open.values()) {
      if (subscription.parts.number === number) return toSettled(subscription, name);
    }
    return undefined; // its subscription has ended
  }

  /** Before 1.2, `message-id` names an event, in 1.1 together with `subscription`. */
  #findByMessage(headers: Headers): Settled | undefined {
    const messageId = requireHeader(headers, "message-id");
    const name =
      this.#parts.version === "1.1" ? requireHeader(headers, "subscription") : findHeader(headers, "subscription");
    if (name === undefined) return this.#findAnywhere(messageId);
    const subscription = this.#open.get(name);
    // An earlier subscription of that name may have sent the event.
    if (this.#ended.has(name) && subscription?.knows(messageId) !== true) return undefined;
    if (subscription !== undefined) return toSettled(subscription, messageId);
    throw new BrokerError("subscriptionNotExist", { details: `this connection has no subscription ${quote(name)}` });
  }

  #findAnywhere(messageId: string): Settled | undefined {
    const all = [...this.#open.values()];
    const found = all.find((one) => one.awaits(messageId)) ?? all.find((one) => one.knows(messageId));
    if (found !== undefined) return toSettled(found, messageId);
    if (this.#ended.size > 0) return undefined; // the event may be of an ended subscription
    throw neverSent(messageId);
  }

  #remember(name: string): void {
    if (this.#ended.has(name)) return;
    this.#ended.add(name);
    this.#nameBytes += name.length;
    const [oldest] = this.#ended;
    if (this.#ended.size <= this.#parts.settings.subscriptionsMax || oldest === undefined) return;
    this.#ended.delete(oldest);
    this.#nameBytes -= oldest.length;
  }
}

function toSettled(subscription: Subscription, name: string): Settled | undefined {
  if (!subscription.knows(name)) throw neverSent(name);
  return subscription.awaits(name) ? { subscription, name } : undefined;
}

function neverSent(id: string): BrokerError {
  return parameterError(`no message ${quote(id)} waits for an acknowledgement on this connection`);
}

function toAckMode(text: string, version: Version): AckMode {
  const found = ackModes.find((known) => known === text);
  if (found !== undefined && !(version === "1.0" && found === "client-individual")) return found;
  throw parameterError(
    `"ack" is ${quote(text)}; STOMP ${version} knows ${ackModes.slice(0, version === "1.0" ? 2 : 3).join(", ")}`,
  );
}

function toPrefetch(text: string | undefined, ackMode: AckMode): number {
  if (text === undefined) return ackMode === "auto" ? prefetchMax : prefetchDefault;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw parameterError(`"prefetch-count" is ${quote(text)}, and should be a number from 1`);
  return Math.min(Number(text), prefetchMax);
}
