import { BrokerError, isBrokerError, toBrokerError } from "@stele/wire";
import type { Pauses } from "../../lib/time-slices.ts";
import type { DeadLetter } from "../../domain/dead-letter.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { Topic } from "../../domain/topic.ts";
import type { Access } from "../access/access.ts";
import type { AuditTrail } from "../access/audit-trail.ts";
import type { Caller } from "../access/caller.ts";
import type { Role } from "../access/role-table.ts";
import type { EventCall } from "../broker.ts";
import type { SkippedEntry } from "../../ports/store.ts";
import type { Groups } from "../group.ts";
import type { PlacedEvent, PlacedProof } from "../placed-event.ts";
import type { EventQuery } from "../query/event-query.ts";
import type { ProofQuery } from "../query/proof-query.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { BlockFinder } from "./block-finder.ts";
import type {
  BlockView,
  EventsCall,
  GroupView,
  ListedSubscription,
  NodePage,
  OrderCall,
  OrderResult,
  Page,
  PageCall,
  SearchCall,
  SessionsCall,
  SessionView,
  SubscriptionDetails,
  TopicDetails,
  TopicsCall,
} from "./calls.ts";
import type { GroupFinder } from "./group-finder.ts";
import type { NodeFinder } from "./node-finder.ts";
import type { Orders } from "./audited-orders.ts";
import { asksForSecret, withMadeSecret } from "./made-secret.ts";
import { pausesFor } from "./caller-pauses.ts";
import type { CountedOrder } from "./subscription-operator.ts";
import type { Figure, Figures } from "./figures.ts";
import type { RoleOrders } from "./role-orders.ts";
import type { SessionFinder } from "./session-finder.ts";
import type { SubscriptionFinder } from "./subscription-finder.ts";
import type { TopicFinder } from "./topic-finder.ts";

/** The calls of operators. Each first checks the caller's right to administer. @throws BrokerError 100701, 100702. */
export interface Operator {
  searchSubscriptions(caller: Caller, call: SearchCall, page: PageCall): Promise<Page<ListedSubscription>>;
  getSubscription(caller: Caller, id: string): Promise<SubscriptionDetails>;
  /** Events that the subscription skipped because their attempts failed. */
  listDeadLetters(caller: Caller, id: string, page: PageCall): Promise<Page<DeadLetter>>;
  /** Carries out an order, or answers what it would concern. Any node can do this. */
  orderSubscription(caller: Caller, id: string, call: OrderCall): Promise<OrderResult>;
  /** Does the same for a page of the subscriptions that a search finds. A refused order does not stop the others. */
  orderSubscriptions(caller: Caller, call: SearchCall, rest: OrderCall & PageCall): Promise<Page<OrderResult>>;
  searchSessions(caller: Caller, call: SessionsCall, page: PageCall): Promise<Page<SessionView>>;
  getSession(caller: Caller, id: string): Promise<SessionView>;
  searchTopics(caller: Caller, call: TopicsCall, page: PageCall): Promise<Page<Topic>>;
  getTopic(caller: Caller, name: string, groupId: string | undefined): Promise<TopicDetails>;
  listEvents(caller: Caller, call: EventsCall): Promise<Page<PlacedEvent>>;
  /** Any event: an operator needs no right to its topic. */
  getEvent(caller: Caller, call: EventCall): Promise<PlacedEvent>;
  getProof(caller: Caller, call: EventCall): Promise<PlacedProof>;
  listGroups(caller: Caller, page: PageCall): Promise<Page<GroupView>>;
  /** Entries of the chain that the index of a group skipped, newest first. */
  listSkippedEntries(caller: Caller, groupId: string, page: PageCall): Promise<Page<SkippedEntry>>;
  /** Blocks that have events, the newest first. */
  listBlocks(caller: Caller, groupId: string | undefined, page: PageCall): Promise<Page<BlockView>>;
  /** Sorted by address. */
  listNodes(caller: Caller, page: PageCall): Promise<NodePage>;
  /** Figures of this node, oldest first. */
  listFigures(caller: Caller): readonly Figure[];
  listRoles(caller: Caller, page: PageCall): Promise<Page<Role>>;
  getRole(caller: Caller, name: string): Promise<Role>;
  setRole(caller: Caller, name: string, rules: readonly AccessRule[]): Promise<Role>;
  /** Removes a role from the store. */
  deleteRole(caller: Caller, name: string): Promise<void>;
}

export interface GuardedOperatorOptions {
  readonly access: Access;
  readonly slices: Pauses;
  readonly groups: Groups;
  readonly randomness: Pick<Randomness, "bytes">;
  readonly finder: SubscriptionFinder;
  readonly orders: Orders;
  readonly roleOrders: RoleOrders;
  readonly sessions: SessionFinder;
  readonly topics: TopicFinder;
  readonly blocks: BlockFinder;
  readonly events: Pick<EventQuery, "get">;
  readonly proofs: Pick<ProofQuery, "get">;
  readonly figures: Figures;
  readonly groupFinder: GroupFinder;
  readonly nodeFinder: NodeFinder;
  /** Undefined without an audit log. Records why an order for many ended half-way: its answer is not an error, so `AuditedOperator` writes no line. */
  readonly trail: AuditTrail | undefined;
}

/**
 * Maximum number of orders of one call that run at once. Each waits up to a second for an attempt in progress, and attempts that hang are a common reason to
 * pause many subscriptions. With more at once, each would wait too long: a node of a cluster claims subscriptions over two connections.
 */
const ordersAtOnceMax = 32;

/** Checks the caller's right to each call before it serves the call. */
export class GuardedOperator implements Operator {
  readonly #options: GuardedOperatorOptions;

  constructor(options: GuardedOperatorOptions) {
    this.#options = options;
  }

  async searchSubscriptions(caller: Caller, call: SearchCall, page: PageCall): Promise<Page<ListedSubscription>> {
    this.#authorize(caller, call.groupId);
    return this.#options.finder.list(call, { ...page, slices: this.#pausesFor(caller, call.groupId) });
  }

  async getSubscription(caller: Caller, id: string): Promise<SubscriptionDetails> {
    this.#authorize(caller);
    return this.#options.finder.get(id, this.#pausesFor(caller));
  }

  async listDeadLetters(caller: Caller, id: string, page: PageCall): Promise<Page<DeadLetter>> {
    this.#authorize(caller);
    return this.#options.finder.listDeadLetters(id, page);
  }

  async orderSubscription(caller: Caller, id: string, call: OrderCall): Promise<OrderResult> {
    this.#authorize(caller);
    const { order, secret } = withMadeSecret(call.order, this.#options.randomness);
    const result = await this.#options.orders.order(caller, id, { ...call, order, ...this.#boundsFor(caller) });
    return secret === undefined || call.isDryRun ? result : { ...result, secret };
  }

  async orderSubscriptions(caller: Caller, call: SearchCall, rest: OrderCall & PageCall): Promise<Page<OrderResult>> {
    this.#authorize(caller);
    if (asksForSecret(rest.order)) {
      throw new BrokerError("parameterInvalid", { details: '"secret": "generate" is for one subscription' });
    }
    const bounds = this.#boundsFor(caller);
    const { finder, orders } = this.#options;
    const { items, next } = await finder.search(call, { ...rest, ...bounds });
    const ids = items.map(({ subscription }) => subscription.id);
    const planned = await orders.dryRun(ids, { ...rest, ...bounds });
    if (rest.isDryRun) return { items: planned, next };
    const results: OrderResult[] = [];
    for (let start = 0; start < planned.length; start += ordersAtOnceMax) {
      try {
        await bounds.slices.pause();
      } catch (error) {
        // Before the first change, refuse the call. Later, the answer must say which subscriptions have changed.
        if (start === 0) throw error;
        this.#options.trail?.recordRefusal(caller, { action: rest.order.kind, error }, { groupId: call.groupId });
        const reason = toReason(error);
        results.push(...planned.slice(start).map(({ id }) => ({ id, events: 0, error: reason })));
        break;
      }
      const chunk = planned.slice(start, start + ordersAtOnceMax);
      results.push(...(await Promise.all(chunk.map((one) => this.#order(caller, one, { ...rest, ...bounds })))));
    }
    return { items: results, next };
  }

  async searchSessions(caller: Caller, call: SessionsCall, page: PageCall): Promise<Page<SessionView>> {
    this.#authorize(caller, call.groupId);
    return this.#options.sessions.search(call, { ...page, slices: this.#pausesFor(caller, call.groupId) });
  }

  async getSession(caller: Caller, id: string): Promise<SessionView> {
    this.#authorize(caller);
    return this.#options.sessions.get(id, this.#pausesFor(caller));
  }

  async searchTopics(caller: Caller, call: TopicsCall, page: PageCall): Promise<Page<Topic>> {
    this.#authorize(caller, call.groupId);
    return this.#options.topics.search(call, { ...page, slices: this.#pausesFor(caller, call.groupId) });
  }

  async getTopic(caller: Caller, name: string, groupId: string | undefined): Promise<TopicDetails> {
    this.#authorize(caller, groupId);
    return this.#options.topics.get(name, { groupId, slices: this.#pausesFor(caller, groupId) });
  }

  async listEvents(caller: Caller, call: EventsCall): Promise<Page<PlacedEvent>> {
    this.#authorize(caller, call.groupId);
    return this.#options.topics.listEvents(call);
  }

  async getEvent(caller: Caller, { groupId, eventId }: EventCall): Promise<PlacedEvent> {
    this.#authorize(caller, groupId);
    const { groups, events } = this.#options;
    return events.get(groups.get(groupId), eventId);
  }

  async getProof(caller: Caller, { groupId, eventId }: EventCall): Promise<PlacedProof> {
    this.#authorize(caller, groupId);
    const { groups, proofs } = this.#options;
    return proofs.get(groups.get(groupId), eventId);
  }

  async listGroups(caller: Caller, page: PageCall): Promise<Page<GroupView>> {
    this.#authorize(caller);
    return this.#options.groupFinder.list(page);
  }

  async listSkippedEntries(caller: Caller, groupId: string, page: PageCall): Promise<Page<SkippedEntry>> {
    this.#authorize(caller, groupId);
    return this.#options.groupFinder.listSkippedEntries(groupId, page);
  }

  async listBlocks(caller: Caller, groupId: string | undefined, page: PageCall): Promise<Page<BlockView>> {
    this.#authorize(caller, groupId);
    return this.#options.blocks.list(groupId, { ...page, slices: this.#pausesFor(caller, groupId) });
  }

  async listNodes(caller: Caller, page: PageCall): Promise<NodePage> {
    this.#authorize(caller);
    return this.#options.nodeFinder.list(page);
  }

  listFigures(caller: Caller): readonly Figure[] {
    this.#authorize(caller);
    return this.#options.figures.list();
  }

  async listRoles(caller: Caller, page: PageCall): Promise<Page<Role>> {
    this.#authorize(caller);
    return this.#options.roleOrders.list(page);
  }

  async getRole(caller: Caller, name: string): Promise<Role> {
    this.#authorize(caller);
    return this.#options.roleOrders.get(name);
  }

  async setRole(caller: Caller, name: string, rules: readonly AccessRule[]): Promise<Role> {
    this.#authorize(caller);
    return this.#options.roleOrders.set(caller, name, rules);
  }

  async deleteRole(caller: Caller, name: string): Promise<void> {
    this.#authorize(caller);
    return this.#options.roleOrders.delete(caller, name);
  }

  /** Carries out an order whose events `dryRun` has just counted. A failure becomes part of the result. */
  async #order(caller: Caller, { id, error, ...counted }: OrderResult, call: CountedOrder): Promise<OrderResult> {
    try {
      return await this.#options.orders.order(caller, id, { ...call, ...(error === undefined && { counted }) });
    } catch (failed) {
      return { id, events: 0, error: failed };
    }
  }

  #boundsFor(caller: Caller): Pick<CountedOrder, "slices" | "checkRight"> {
    return { slices: this.#pausesFor(caller), checkRight: () => this.#authorize(caller) };
  }

  #pausesFor(caller: Caller, groupId?: string): Pauses {
    return pausesFor(caller, { slices: this.#options.slices, checkRight: () => this.#authorize(caller, groupId) });
  }

  #authorize(caller: Caller, groupId?: string): void {
    this.#options.access.authorize(caller, "administer", groupId === undefined ? undefined : { groupId });
  }
}

/**
 * Why an order did not begin for a subscription. Except for a lost right, it is 200300: other errors, such as 200207, leave open whether an order changed
 * something.
 */
function toReason(error: unknown): unknown {
  if (isBrokerError(error, "credentialRefused") || isBrokerError(error, "accessDenied")) return error;
  return new BrokerError("busy", { details: `not begun: ${toBrokerError(error).message}`, cause: error });
}
