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

/** Which callback subscriptions to find; what is undefined does not matter. */
export interface SubscriptionSearch {
  readonly groupId?: GroupId | undefined;
  readonly state?: SubscriptionState | undefined;
  readonly format?: WebhookFormat | undefined;
  readonly filter?: TopicFilter | undefined;
  /** How the filter begins. */
  readonly prefix?: string | undefined;
  /** Receivers (see findReceiver); one of them has to be that of the url. */
  readonly receivers?: readonly string[] | undefined;
  /** Receivers without a port; one of them has to be that of the url, at whatever port. */
  readonly hosts?: readonly string[] | undefined;
  readonly principal?: string | undefined;
  readonly owner?: NodeId | undefined;
  /** The receiver has failed since before this time. */
  readonly failingBefore?: number | undefined;
}

/** What an operator changes of a callback subscription; what is left out stays. */
export interface SubscriptionMove {
  readonly cursor?: Position;
  readonly state?: "active" | "paused";
  readonly filter?: TopicFilter;
  readonly delivery?: WebhookDelivery;
  /** Not at all if left out. */
  readonly failure?: Failure;
}

/** Whether a subscription is one of those that a search finds. */
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
