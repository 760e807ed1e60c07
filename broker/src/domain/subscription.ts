import { BrokerError, quote } from "@stele/wire";
import type { DeliveryOptions } from "./delivery-options.ts";
import type { GroupId } from "./group-id.ts";
import type { NodeId } from "./node.ts";
import type { Position } from "./position.ts";
import type { TopicFilter } from "./topic-filter.ts";
import { isUuid } from "./uuid.ts";

/** A subscription's identifier: a UUID in lower case, with `tenant/` before it if a client of a tenant made the subscription. */
export type SubscriptionId = string & { readonly __brand: "SubscriptionId" };

/** Forms of callbacks. */
export const webhookFormats = ["RESTful", "JsonRPC"] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

/** Protocols whose listeners hold a connection, and whose subscriptions the admin listing shows. */
export type ListedProtocol = "MQTT" | "STOMP";

/** Protocols of sessions. A tail has a session for as long as its request lasts. */
export type SessionProtocol = ListedProtocol | "Tail";

/** Kinds of listener as the admin listing names them. */
export type InterfaceType = WebhookFormat | ListedProtocol;

/** The broker sends events to a URL. */
export interface WebhookDelivery {
  readonly kind: "webhook";
  readonly format: WebhookFormat;
  readonly url: string;
  /** Signing secret of the callbacks (Standard Webhooks 1.0), or both secrets of a rotation: see readSecrets. */
  readonly secret: string | undefined;
  /** Undefined for the default delivery. */
  readonly options?: DeliveryOptions | undefined;
}

/** The connection of a session takes events at its own pace. */
export interface SessionDelivery {
  readonly kind: "session";
  readonly protocol: ListedProtocol;
  readonly sessionId: string;
}

/** How events reach a subscriber. */
export type Delivery = WebhookDelivery | SessionDelivery;

export function interfaceTypeOf(delivery: Delivery): InterfaceType {
  return delivery.kind === "webhook" ? delivery.format : delivery.protocol;
}

/**
 * `suspended`: the broker stopped delivering until somebody subscribes again or an operator resumes it; the cursor stays. `paused`: an operator
 * stopped the delivery until an operator resumes it. `locked`: the broker cannot decrypt the secret, and delivers nothing until somebody subscribes
 * again with the secret. `damaged`: the row fails its checksum, so the cursor is unknown; the broker delivers nothing until somebody removes the
 * subscription and creates a new one. Stores never write `locked` and `damaged`: they derive them when they read a row.
 */
export type SubscriptionState = "active" | "suspended" | "paused" | "locked" | "damaged";

/** A consumer's subscription: its filter, its destination and its progress. Times are milliseconds since the epoch. */
export interface Subscription {
  readonly id: SubscriptionId;
  readonly groupId: GroupId;
  readonly filter: TopicFilter;
  readonly delivery: Delivery;
  readonly state: SubscriptionState;
  /** For a `locked` subscription whose stored state is not active: the stored state. The subscription has that state again once its secret is available. */
  readonly heldState?: "paused" | "suspended" | undefined;
  /** Every matching event up to this position is acknowledged or skipped. */
  readonly cursor: Position;
  /** Matching events acknowledged since the subscription was created. */
  readonly notifiedCount: number;
  /** Time of the newest acknowledged notification; before the first, the time of creation. */
  readonly notifiedAt: number;
  /** Failed attempts since the last accepted one, as last saved; 0 while the receiver works. */
  readonly failedAttempts: number;
  /** Total wait after the failed attempts, in milliseconds. Delivery gives up when it reaches a limit. */
  readonly failedMs: number;
  /** When the receiver began to fail; 0 while it works. */
  readonly failingSince: number;
  /** The receiver asked the broker to make no attempt before this time; 0 if it did not ask. */
  readonly retryAt: number;
  readonly createdAt: number;
  /** The owner, as `Owner` in engine/access; undefined for a subscription that was made without a credential. */
  readonly principal?: string | undefined;
  /**
   * The node that owns the subscription and delivers it. A row may still name a node that is no longer a member (see Coordinator.listNodes).
   * Undefined with a single process, and before the first assignment.
   */
  readonly owner: NodeId | undefined;
  /**
   * Fencing token: changes with the owner, with each rollback that must stop the owner's writes, and with each change by an operator. The store
   * refuses writes with any other epoch. Compared for equality only. A single process begins with 0. In a cluster, the epoch starts at random below
   * 2^40 and counts up. The random start prevents a recreated subscription from reusing an epoch of the removed one.
   */
  readonly epoch: number;
}

/** How the attempts for the event after the cursor have failed. */
export type Failure = Pick<Subscription, "failedAttempts" | "failedMs" | "failingSince" | "retryAt">;

/** The {@link Failure} of a receiver that works. */
export const nothingFailed = { failedAttempts: 0, failedMs: 0, failingSince: 0, retryAt: 0 } as const;

/** A subscription that a callback worker may deliver. */
export type CallbackSubscription = Subscription & { readonly delivery: WebhookDelivery };

export function isCallback(subscription: Subscription): subscription is CallbackSubscription {
  return subscription.delivery.kind === "webhook";
}

/** Checks an identifier, and converts it to lower case. @throws BrokerError 100503 blank, 100505 not a UUID. */
export function parseSubscriptionId(text: string): SubscriptionId {
  if (text.trim() === "") throw new BrokerError("subscriptionIdBlank");
  const folded = text.toLowerCase();
  if (!isUuid(folded)) throw new BrokerError("subscriptionIdInvalid", { details: quote(text) });
  return folded as SubscriptionId; // Checked above.
}

/** Checks an identifier that may begin with `tenant/`. @throws BrokerError as {@link parseSubscriptionId}. */
export function parseAnySubscriptionId(text: string): SubscriptionId {
  const end = text.indexOf("/") + 1;
  return (text.slice(0, end) + parseSubscriptionId(text.slice(end))) as SubscriptionId; // All but the tenant's name is checked.
}

/** The identifier without `tenant/`, as the tenant's clients know it. */
export function toClientsId(id: SubscriptionId): SubscriptionId {
  return id.slice(id.indexOf("/") + 1) as SubscriptionId; // What is left is the UUID.
}
