import type { AuditTrail } from "./access/audit-trail.ts";
import { createOrders } from "./operate/audited-orders.ts";
import { AuditedOperator } from "./operate/audited-operator.ts";
import { BlockFinder } from "./operate/block-finder.ts";
import { GroupFinder, type GroupFinderOptions } from "./operate/group-finder.ts";
import { GuardedOperator, type GuardedOperatorOptions, type Operator } from "./operate/operator.ts";
import { NodeFinder, type NodeFinderOptions } from "./operate/node-finder.ts";
import { Places, type PlacesOptions } from "./operate/places.ts";
import { RoleOrders, type RoleOrdersOptions } from "./operate/role-orders.ts";
import { SessionFinder, type SessionFinderOptions } from "./operate/session-finder.ts";
import { SubscriptionFinder, type SubscriptionFinderOptions } from "./operate/subscription-finder.ts";
import { SubscriptionOperator, type SubscriptionOperatorOptions } from "./operate/subscription-operator.ts";
import { TopicFinder, type TopicFinderOptions } from "./operate/topic-finder.ts";
import type { EventQuery } from "./query/event-query.ts";

type Parts = SubscriptionFinderOptions &
  Omit<SubscriptionOperatorOptions, "places" | "listNodes"> &
  Omit<
    GuardedOperatorOptions,
    "finder" | "groupFinder" | "nodeFinder" | "orders" | "roleOrders" | "topics" | "blocks" | "sessions"
  > &
  SessionFinderOptions &
  TopicFinderOptions &
  GroupFinderOptions &
  NodeFinderOptions &
  PlacesOptions;

interface OperatorParts extends Parts {
  readonly events: EventQuery;
  /** Undefined without an audit log. */
  readonly trail: AuditTrail | undefined;
  readonly roles: RoleOrdersOptions["roles"];
}

/** Builds the operator's calls. */
export function createOperator(parts: OperatorParts): Operator {
  const places = new Places(parts);
  const { nodes, trail } = parts;
  const listNodes = nodes && (() => nodes.coordinator.listNodes());
  const guarded = new GuardedOperator({
    ...parts,
    finder: new SubscriptionFinder(parts),
    orders: createOrders(new SubscriptionOperator({ ...parts, places, listNodes }), trail),
    roleOrders: new RoleOrders(parts),
    sessions: new SessionFinder(parts),
    topics: new TopicFinder(parts),
    blocks: new BlockFinder(parts),
    groupFinder: new GroupFinder(parts),
    nodeFinder: new NodeFinder(parts),
  });
  return trail === undefined ? guarded : new AuditedOperator(guarded, trail);
}
