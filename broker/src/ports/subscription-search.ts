import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import type { Position } from "../domain/position.ts";
import { findReceiver } from "../domain/receiver.ts";
import {
  type Failure,
  interfaceTypeOf,
  type Subscription,
  type SubscriptionState,
  type WebhookDelivery,
  type WebhookFormat,
} from "../domain/subscription.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";

/** Which callback subscriptions to find. A criterion that is undefined matches all. */
export interface SubscriptionSearch {
  readonly groupId?: GroupId | undefined;
  readonly state?: SubscriptionState | undefined;
  readonly format?: WebhookFormat | undefined;
  readonly filter?: TopicFilter | undefined;
  /** Text that the filter begins with. */
  readonly prefix?: string | undefined;
  /** Receivers (see findReceiver); the url must lead to one of them. */
  readonly receivers?: readonly string[] | undefined;
  /** Receivers without a port; the url must lead to one of them, at any port. */
  readonly hosts?: readonly string[] | undefined;
  readonly principal?: string | undefined;
  readonly owner?: NodeId | undefined;
  /** The receiver began to fail before this time, in milliseconds since the epoch, and still fails. */
  readonly failingBefore?: number | undefined;
}

/** An operator's change of a callback subscription. A field that is left out keeps its value, except `failure`. */
export interface SubscriptionMove {
  readonly cursor?: Position;
  readonly state?: "active" | "paused" | "suspended";
  readonly filter?: TopicFilter;
  readonly delivery?: WebhookDelivery;
  /** Failures to store; cleared if left out. */
  readonly failure?: Failure;
}

/** Whether a search finds a subscription. */
export function matchesSearch(search: SubscriptionSearch, subscription: Subscription): boolean {
  const { groupId, filter, state, principal, owner, failingSince, delivery } = subscription;
  const { prefix, receivers, hosts, failingBefore } = search;
  const pairs: readonly (readonly [unknown, unknown])[] = [
    [search.groupId, groupId],
    [search.filter, filter],
    [search.state, state],
    [search.principal, principal],
    [search.owner, owner],
    [search.format, interfaceTypeOf(delivery)],
  ];
  if (pairs.some(([wanted, value]) => wanted !== undefined && wanted !== value)) return false;
  if (prefix !== undefined && !filter.startsWith(prefix)) return false;
  if (failingBefore !== undefined && (failingSince === 0 || failingSince >= failingBefore)) return false;
  if (receivers === undefined && hosts === undefined) return true;
  const receiver = delivery.kind === "webhook" ? findReceiver(delivery.url) : undefined;
  if (receiver === undefined || receivers?.includes(receiver) === false) return false;
  return hosts === undefined || hosts.some((host) => receiver === host || receiver.startsWith(`${host}:`));
}
