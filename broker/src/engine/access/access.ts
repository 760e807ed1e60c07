import { BrokerError, quote } from "@stele/wire";
import type { RuleAction } from "../../domain/access-rule.ts";
import { type GroupId, orDefaultGroup } from "../../domain/group-id.ts";
import type { StoredQuota, CountedRows } from "../../domain/quota.ts";
import { parseCallbackFilter } from "../../domain/shared-filter.ts";
import {
  parseAnySubscriptionId,
  parseSubscriptionId,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import { parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { joinTexts } from "../../lib/join-texts.ts";
import { type Caller, type Known, nobody, type Owner, ownerOf, type Principal, type Rejected } from "./caller.ts";
import type { AuditTrail } from "./audit-trail.ts";
import type { FailedLogIns, LogInOrigin } from "./failed-log-ins.ts";
import type { Action, Policy } from "./policy.ts";
import type { Quotas } from "./quotas.ts";
import { tenantNamesOf, tenantNamesOfOwner } from "./tenant.ts";
import type { PublishCall } from "../broker.ts";

/** The names in a call: its group, undefined for the default group, and its topic if it has one. */
export interface Named {
  readonly groupId: string | undefined;
  readonly topic?: string | undefined;
  /** Throws if the topic is malformed; `parseTopicFilter` if left out. */
  readonly parse?: (topic: string) => unknown;
}

/** A subscription, or a filter of a session, that a caller asks to remove by its identifier. */
export interface Removable {
  readonly owner: string | undefined;
  readonly groupId: string;
  /** Undefined if the row is damaged, so that the filter is unknown. */
  readonly filter: TopicFilter | undefined;
}

/** The scope of a right on the whole broker. */
const everything = { groupId: undefined, topic: undefined };

export interface AccessParts {
  readonly policy: Policy;
  readonly defaultGroupId: GroupId;
  /** Undefined if there are no quotas. */
  readonly quotas?: Quotas | undefined;
  /** Slows failed log-ins; left out if access control is off. */
  readonly failed?: FailedLogIns | undefined;
  /** Left out without an audit log. */
  readonly trail?: AuditTrail | undefined;
}

/** The principal of a log-in from an address that failed so often that the broker does not answer it. */
const tooMany: Rejected = { kind: "rejected", reason: "too many failed log-ins come from the address", isClosed: true };

/** The one place that checks rights and counts use against quotas. */
export class Access {
  readonly #policy: Policy;
  readonly #defaultGroupId: GroupId;
  readonly #quotas: Quotas | undefined;
  readonly #failed: FailedLogIns | undefined;
  readonly #trail: AuditTrail | undefined;

  constructor({ policy, defaultGroupId, quotas, failed, trail }: AccessParts) {
    this.#policy = policy;
    this.#trail = trail;
    this.#failed = failed;
    this.#defaultGroupId = defaultGroupId;
    this.#quotas = quotas;
  }

  /** Finds the principal of a credential. Never throws: {@link authorize} and {@link admit} refuse a wrong one. */
  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal> {
    const found = this.#policy.authenticate(credential, origin.certificate);
    return found instanceof Promise
      ? found.then((principal) => this.#judge(principal, origin))
      : this.#judge(found, origin);
  }

  /** Counts a log-in that failed before the client sent a credential like a log-in with a wrong credential. */
  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#slow({ kind: "rejected", reason }, origin, reason);
  }

  /** Whether a listener accepts a new connection. */
  mayConnect(findAddress: () => string | undefined): boolean {
    return this.#failed?.mayConnect(findAddress) ?? true;
  }

  /** Treats the log-in of a principal without any rights as one with a wrong credential. */
  #judge(principal: Principal, origin: LogInOrigin): Principal | Promise<Principal> {
    if (principal.kind === "anonymous") return principal;
    const reason = this.#findFault(principal);
    return reason === undefined ? principal : this.#slow(principal, origin, reason);
  }

  #slow(principal: Known | Rejected, origin: LogInOrigin, reason: string): Principal | Promise<Principal> {
    this.#trail?.recordFailedLogIn(principal, origin, reason);
    const held = this.#failed?.note(origin, reason);
    return held?.then((isAnswered) => (isAnswered ? principal : tooMany)) ?? principal;
  }

  /** Why the principal has no rights; undefined if it may have some, or while the policy cannot say. */
  #findFault(principal: Principal): string | undefined {
    try {
      return this.#policy.findFault(principal);
    } catch {
      return undefined;
    }
  }

  /**
   * Checks a right, on the whole broker if `named` is left out. @throws BrokerError 100701, 100702; 200207 or 200300 if the credential cannot be checked; what
   * `named.parse` throws for a malformed topic.
   */
  authorize(caller: Caller, action: Action, named?: Named): void {
    const topic = named?.topic;
    this.#check(caller, named, { action, details: topic === undefined ? action : `${action} ${quote(topic)}` });
  }

  /** Checks that the caller has one of several rights. @throws BrokerError as {@link authorize} does for the first right. */
  authorizeAny(caller: Caller, actions: readonly [Action, ...Action[]], named: Named): void {
    const [first] = actions;
    const allowed = actions.find((action) => this.isAllowed(caller, action, named));
    this.authorize(caller, allowed ?? first, named);
  }

  /**
   * Checks the right to subscribe. Callbacks outlast a token. So a principal with a token must also have this right by keys or lasting roles: without it, the
   * broker would deliver nothing. @throws BrokerError as {@link authorize}.
   */
  authorizeCallback(caller: Caller, named: Named & { readonly topic: string }): void {
    this.authorize(caller, "subscribe", { ...named, parse: parseCallbackFilter });
    parseCallbackFilter(named.topic); // Refuses a shared filter, which a rule without a filter allows.
    const { principal } = caller;
    if (principal.kind !== "known" || principal.token === undefined) return;
    const receives = this.#receiver(principal.id, orDefaultGroup(named.groupId, this.#defaultGroupId));
    if (this.#policy.mayDeliver(principal.id) && receives(named.topic)) return;
    const remedy = "create a key for its principal, or give its issuer lastingRoles, with the right to subscribe";
    throw new BrokerError("accessDenied", { details: `callbacks outlast a token; ${remedy} to ${quote(named.topic)}` });
  }

  /** Whether an admitted caller has a right. */
  isAllowed(caller: Caller, action: Action, { groupId, topic }: Named): boolean {
    return this.#policy.allows(caller, action, { groupId: orDefaultGroup(groupId, this.#defaultGroupId), topic });
  }

  /** Whether an admitted caller has a right on at least some topics. */
  allowsSome(caller: Caller, action: RuleAction): boolean {
    return this.#policy.allows(caller, action === "admin" ? "administer" : action, everything);
  }

  /** Checks that the caller may connect. @throws BrokerError 100701; 200207 or 200300 if the credential cannot be checked. */
  admit({ principal }: Pick<Caller, "principal">): void {
    const fault = this.#policy.findFault(principal);
    if (fault !== undefined) throw new BrokerError("credentialRefused", { details: fault });
  }

  /** Counts publishes that are about to be submitted, all or none. @throws BrokerError 200301. */
  countPublishes(caller: Caller, calls: readonly PublishCall[]): void {
    this.#quotas?.countPublishes(caller, calls);
  }

  /** Delays the refusal of a publish over a quota: calls `answer` later. */
  holdRefusal(answer: () => void): void {
    this.#quotas?.refusals.hold(answer); // There is no such refusal without quotas.
  }

  /** Counts a caller's connection, as `Quotas.countConnection` does, until it ends or the returned function is called. @throws BrokerError 200301. */
  countConnection(caller: Caller, session?: string): () => void {
    return this.#quotas?.countConnection(caller, session) ?? (() => {});
  }

  /** The quotas on the rows of these kinds that an owner may store. */
  storedQuotas(owner: string | undefined, kinds: readonly CountedRows[]): readonly StoredQuota[] {
    return this.#quotas?.storedQuotas(toOwner(owner), kinds) ?? [];
  }

  /** Returns a function that waits until the owner's quota allows a callback. The function returns undefined if the quota allows it at once. */
  callbackTurnOf({ principal }: Subscription): (signal: CancelSignal) => Promise<void> | undefined {
    const owner = toOwner(principal);
    return (signal) => this.#quotas?.callbackTurn(owner, signal);
  }

  /** Why the broker refuses everybody at the moment; undefined if it does not. */
  findTrouble(): string | undefined {
    return this.#policy.findTrouble();
  }

  /** A warning to the operator; undefined if there is none. */
  findWarning(): string | undefined {
    return joinTexts([this.#policy.findWarning(), this.#trail?.findTrouble()]);
  }

  /** Whether a connection of the principal may continue. */
  isAdmitted(principal: Principal): boolean {
    return this.#findFault(principal) === undefined;
  }

  /** Whether the caller is the owner, or an admin. */
  owns(caller: Caller, owner: string | undefined): boolean {
    if (caller.principal.kind === "known" && caller.principal.id === owner) return true;
    return this.#policy.allows(caller, "administer", everything);
  }

  /** @throws BrokerError 100702 if {@link owns} is false. */
  checkOwner(caller: Caller, owner: string | undefined): void {
    if (!this.owns(caller, owner))
      throw new BrokerError("accessDenied", { details: "it belongs to another principal" });
  }

  /** Whether the caller {@link owns} a subscription. @throws BrokerError 100702 if it does, but has no right to unsubscribe from the filter. */
  mayRemove(caller: Caller, { owner, groupId, filter }: Removable): boolean {
    if (!this.owns(caller, owner)) return false;
    // The caller did not name the filter, so the refusal must not reveal it.
    this.#check(caller, { groupId, topic: filter }, { action: "unsubscribe", details: "unsubscribe" });
    return true;
  }

  /**
   * Parses the identifier of a subscription that a caller named. Only a tenant's principal or an admin can name a subscription of a tenant: tenants choose
   * identifiers independently of one another. @throws BrokerError 100503, 100505.
   */
  parseSubscriptionId(caller: Caller, text: string): SubscriptionId {
    const { principal } = caller;
    if (principal.kind !== "known") return parseSubscriptionId(text);
    const mayName = tenantNamesOf(principal) !== undefined || this.owns(caller, undefined);
    return mayName ? parseAnySubscriptionId(text) : parseSubscriptionId(text);
  }

  /** The identifier of a new subscription, made from a UUID. */
  createSubscriptionId({ principal }: Pick<Caller, "principal">, uuid: string): SubscriptionId {
    return tenantNamesOf(principal)?.createId(uuid) ?? parseSubscriptionId(uuid);
  }

  recall(owner: string): Principal {
    return this.#policy.recall(owner as Owner); // The store has only ids of owners.
  }

  /** Returns a function that tells whether the caller can name a topic. Events of other topics, such as another tenant's, do not exist for it. */
  finderFor({ principal }: Pick<Caller, "principal">): (topic: TopicName) => boolean {
    const names = tenantNamesOf(principal);
    return names === undefined ? () => true : (topic) => names.isOwn(topic);
  }

  /** The names of the tenant whose principal owns a subscription; undefined if the owner has no tenant. */
  namesFor({ principal }: Subscription): TenantNames | undefined {
    return tenantNamesOfOwner(toOwner(principal));
  }

  /** Returns a function that tells whether all events of a topic, or of a filter, may reach a subscription. */
  receiverOf({ groupId, principal }: Subscription): (topic: TopicName | TopicFilter) => boolean {
    return this.#receiver(toOwner(principal), groupId);
  }

  /** Whether the owner of a subscription still has the right to callbacks. */
  mayDeliver({ principal }: Subscription): boolean {
    return this.#policy.mayDeliver(toOwner(principal));
  }

  /** @throws BrokerError 100702 unless the rules of the principal's token, or of its valid keys together, allow every event that matches the filter. */
  checkReceiver({ principal }: Pick<Caller, "principal">, groupId: GroupId, filter: TopicFilter): void {
    if (this.receiverFor(principal, groupId)(filter)) return;
    throw new BrokerError("accessDenied", {
      details: `a key or token of the principal denies a part of ${quote(filter)}`,
    });
  }

  /** Returns a function that tells whether all events of a topic, or of a filter, may reach a principal in a group. */
  receiverFor(principal: Principal, groupId: GroupId): (topic: TopicName | TopicFilter) => boolean {
    if (principal.kind !== "known" || principal.token === undefined) {
      return this.#receiver(ownerOf(principal), groupId);
    }
    const { rules } = principal;
    return within(tenantNamesOf(principal), (topic) => rules.allows("subscribe", { groupId, topic }));
  }

  /** The rules by which {@link receiverFor} decides: the same object while they do not change. Undefined if the policy cannot tell. */
  rulesFor(principal: Principal): object | undefined {
    const isByToken = principal.kind === "known" && principal.token !== undefined;
    return isByToken ? principal.rules : this.#policy.rulesOf(ownerOf(principal));
  }

  #check(
    caller: Caller,
    named: Named | undefined,
    { action, details }: { readonly action: Action; readonly details: string },
  ): void {
    if (action !== "health") this.admit(caller);
    const groupId = named && orDefaultGroup(named.groupId, this.#defaultGroupId);
    const topic = named?.topic;
    if (this.#policy.allows(caller, action, { groupId, topic })) return;
    try {
      if (topic !== undefined) (named?.parse ?? parseTopicFilter)(topic);
    } catch (fault) {
      // No rule covers a malformed name. Tell a caller who has the right on some other name what is wrong with this one.
      if (this.#policy.allows(caller, action, { groupId, topic: undefined })) throw fault;
    }
    throw new BrokerError("accessDenied", { details });
  }

  #receiver(owner: Owner, groupId: string): Receiver {
    return within(tenantNamesOfOwner(owner), (topic) => this.#policy.mayReceive(owner, { groupId, topic }));
  }
}

/** Whether a receiver may get all events of a topic, or of a filter. */
type Receiver = (topic: string) => boolean;

/** Excludes the topic whose name is the tenant's own name: a tenant's filter `#` matches it, but the tenant's clients cannot name it. */
function within(names: TenantNames | undefined, mayReceive: Receiver): Receiver {
  return names === undefined ? mayReceive : (topic) => names.isOwn(topic) && mayReceive(topic);
}

function toOwner(principal: string | undefined): Owner {
  return (principal ?? nobody) as Owner; // The store has only ids of owners.
}
