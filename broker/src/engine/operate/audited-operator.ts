import type { DeadLetter } from "../../domain/dead-letter.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { Topic } from "../../domain/topic.ts";
import type { AuditSubject, AuditTrail } from "../access/audit-trail.ts";
import type { Caller } from "../access/caller.ts";
import type { Role } from "../access/role-table.ts";
import type { EventCall } from "../broker.ts";
import type { SkippedEntry } from "../../ports/store.ts";
import type { PlacedEvent, PlacedProof } from "../placed-event.ts";
import type {
  BlockView,
  EventsCall,
  GroupView,
  NodePage,
  OrderCall,
  OrderResult,
  Page,
  PageCall,
  SearchCall,
  SessionsCall,
  SessionView,
  SubscriptionDetails,
  ListedSubscription,
  TopicDetails,
  TopicsCall,
} from "./calls.ts";
import type { Figure } from "./figures.ts";
import type { Operator } from "./operator.ts";

/** A call, as the audit log names it. */
interface Audited {
  readonly caller: Caller;
  readonly action: string;
  readonly subject?: AuditSubject;
}

/** Audits what operators read, and every call that the broker refuses. `AuditedOrders` and `RoleOrders` audit the orders that it carries out. */
export class AuditedOperator implements Operator {
  readonly #calls: Operator;
  readonly #trail: AuditTrail;

  constructor(calls: Operator, trail: AuditTrail) {
    this.#calls = calls;
    this.#trail = trail;
  }

  searchSubscriptions(caller: Caller, call: SearchCall, page: PageCall): Promise<Page<ListedSubscription>> {
    const audited = { caller, action: "list subscriptions", subject: { groupId: call.groupId } };
    return this.#auditRead(audited, () => this.#calls.searchSubscriptions(caller, call, page));
  }

  getSubscription(caller: Caller, id: string): Promise<SubscriptionDetails> {
    const audited = { caller, action: "show subscription", subject: { subscriptionId: id } };
    return this.#auditRead(audited, () => this.#calls.getSubscription(caller, id));
  }

  listDeadLetters(caller: Caller, id: string, page: PageCall): Promise<Page<DeadLetter>> {
    const audited = { caller, action: "list dead letters", subject: { subscriptionId: id } };
    return this.#auditRead(audited, () => this.#calls.listDeadLetters(caller, id, page));
  }

  orderSubscription(caller: Caller, id: string, call: OrderCall): Promise<OrderResult> {
    const audited = { caller, action: call.order.kind, subject: { subscriptionId: id } };
    return this.#auditRefusal(audited, () => this.#calls.orderSubscription(caller, id, call));
  }

  orderSubscriptions(caller: Caller, call: SearchCall, rest: OrderCall & PageCall): Promise<Page<OrderResult>> {
    const audited = { caller, action: rest.order.kind, subject: { groupId: call.groupId } };
    return this.#auditRefusal(audited, () => this.#calls.orderSubscriptions(caller, call, rest));
  }

  searchSessions(caller: Caller, call: SessionsCall, page: PageCall): Promise<Page<SessionView>> {
    const audited = { caller, action: "list sessions", subject: { groupId: call.groupId } };
    return this.#auditRead(audited, () => this.#calls.searchSessions(caller, call, page));
  }

  getSession(caller: Caller, id: string): Promise<SessionView> {
    const audited = { caller, action: "show session", subject: { sessionId: id } };
    return this.#auditRead(audited, () => this.#calls.getSession(caller, id));
  }

  searchTopics(caller: Caller, call: TopicsCall, page: PageCall): Promise<Page<Topic>> {
    const audited = { caller, action: "list topics", subject: { groupId: call.groupId } };
    return this.#auditRead(audited, () => this.#calls.searchTopics(caller, call, page));
  }

  getTopic(caller: Caller, name: string, groupId: string | undefined): Promise<TopicDetails> {
    const audited = { caller, action: "show topic", subject: { groupId, topic: name } };
    return this.#auditRead(audited, () => this.#calls.getTopic(caller, name, groupId));
  }

  listEvents(caller: Caller, call: EventsCall): Promise<Page<PlacedEvent>> {
    const audited = { caller, action: "list events", subject: { groupId: call.groupId, topic: call.topic } };
    return this.#auditRead(audited, () => this.#calls.listEvents(caller, call));
  }

  getEvent(caller: Caller, call: EventCall): Promise<PlacedEvent> {
    return this.#auditRead({ caller, action: "show event", subject: call }, () => this.#calls.getEvent(caller, call));
  }

  getProof(caller: Caller, call: EventCall): Promise<PlacedProof> {
    return this.#auditRead({ caller, action: "show proof", subject: call }, () => this.#calls.getProof(caller, call));
  }

  listGroups(caller: Caller, page: PageCall): Promise<Page<GroupView>> {
    return this.#auditRead({ caller, action: "list groups" }, () => this.#calls.listGroups(caller, page));
  }

  listSkippedEntries(caller: Caller, groupId: string, page: PageCall): Promise<Page<SkippedEntry>> {
    const audited = { caller, action: "list skipped entries", subject: { groupId } };
    return this.#auditRead(audited, () => this.#calls.listSkippedEntries(caller, groupId, page));
  }

  listBlocks(caller: Caller, groupId: string | undefined, page: PageCall): Promise<Page<BlockView>> {
    const audited = { caller, action: "list blocks", subject: { groupId } };
    return this.#auditRead(audited, () => this.#calls.listBlocks(caller, groupId, page));
  }

  listNodes(caller: Caller, page: PageCall): Promise<NodePage> {
    return this.#auditRead({ caller, action: "list nodes" }, () => this.#calls.listNodes(caller, page));
  }

  listFigures(caller: Caller): readonly Figure[] {
    const action = "list figures";
    try {
      const figures = this.#calls.listFigures(caller);
      this.#trail.recordRead(caller, action);
      return figures;
    } catch (error) {
      this.#trail.recordRefusal(caller, { action, error });
      throw error;
    }
  }

  listRoles(caller: Caller, page: PageCall): Promise<Page<Role>> {
    return this.#auditRead({ caller, action: "list roles" }, () => this.#calls.listRoles(caller, page));
  }

  getRole(caller: Caller, name: string): Promise<Role> {
    const audited = { caller, action: "show role", subject: { role: name } };
    return this.#auditRead(audited, () => this.#calls.getRole(caller, name));
  }

  setRole(caller: Caller, name: string, rules: readonly AccessRule[]): Promise<Role> {
    const audited = { caller, action: "role set", subject: { role: name } };
    return this.#auditRefusal(audited, () => this.#calls.setRole(caller, name, rules));
  }

  deleteRole(caller: Caller, name: string): Promise<void> {
    const audited = { caller, action: "role delete", subject: { role: name } };
    return this.#auditRefusal(audited, () => this.#calls.deleteRole(caller, name));
  }

  async #auditRead<Result>(audited: Audited, task: () => Promise<Result>): Promise<Result> {
    const result = await this.#auditRefusal(audited, task);
    this.#trail.recordRead(audited.caller, audited.action, audited.subject);
    return result;
  }

  async #auditRefusal<Result>({ caller, action, subject }: Audited, task: () => Promise<Result>): Promise<Result> {
    try {
      return await task();
    } catch (error) {
      this.#trail.recordRefusal(caller, { action, error }, subject);
      throw error;
    }
  }
}
