import { BrokerError, quote } from "@stele/wire";
import type { RuleAction } from "../../domain/access-rule.ts";
import { type GroupId, orDefaultGroup } from "../../domain/group-id.ts";
import type { StoredQuota, StoredThing } from "../../domain/quota.ts";
import {
  parseAnySubscriptionId,
  parseSubscriptionId,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import { isTopicFilter, parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { type Caller, type Known, nobody, type Owner, ownerOf, type Principal, type Rejected } from "./caller.ts";
import type { AuditTrail } from "./audit-trail.ts";
import type { FailedLogIns, LogInOrigin } from "./failed-log-ins.ts";
import type { Action, Policy } from "./policy.ts";
import type { Quotas } from "./quotas.ts";
import { namesOf, namesOfOwner } from "./tenant.ts";
import type { PublishCall } from "../broker.ts";

/** What a call names: a group, which is the default one when left out, and a topic where it has one. */
export interface Named {
  readonly groupId: string | undefined;
  readonly topic?: string | undefined;
}

interface Asking {
  readonly caller: Caller;
  readonly action: Action;
  readonly groupId: string | undefined;
}

/** A subscription, or a filter of a session, that a caller asks to remove by its identifier. */
export interface Removable {
  readonly owner: string | undefined;
  readonly groupId: string;
  /** Undefined where it is not known, because its row is damaged. */
  readonly filter: TopicFilter | undefined;
}

/** The whole broker. */
const everything = { groupId: undefined, topic: undefined };

export interface AccessParts {
  readonly policy: Policy;
  readonly defaultGroupId: GroupId;
  /** Undefined where nothing is bounded. */
  readonly quotas?: Quotas | undefined;
  /** Slows failed log-ins; left out where nobody logs in. */
  readonly failed?: FailedLogIns | undefined;
  /** Left out where nothing is written down. */
  readonly trail?: AuditTrail | undefined;
}

/** Somebody who tries so much that no answer is due. */
const tooMany: Rejected = { kind: "rejected", reason: "too many failed log-ins come from the address", isClosed: true };

/** The one place where rights are asked and what is used is counted. */
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

  /** Who gave a credential. Never throws: a wrong one is refused by {@link authorize} and {@link admit}. */
  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal> {
    const found = this.#policy.authenticate(credential, origin.certificate);
    return found instanceof Promise
      ? found.then((principal) => this.#judge(principal, origin))
      : this.#judge(found, origin);
  }

  /** Notes a log-in that failed before it gave a credential, as a wrong one. */
  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#slow({ kind: "rejected", reason }, origin, reason);
  }

  /** Whether a listener takes a new connection. */
  mayConnect(findAddress: () => string | undefined): boolean {
    return this.#failed?.mayConnect(findAddress) ?? true;
  }

  /** Slows a principal that has no rights at all. */
  #judge(principal: Principal, origin: LogInOrigin): Principal | Promise<Principal> {
    if (principal.kind === "anonymous") return principal;
    const reason = this.#findFault(principal);
    return reason === undefined ? principal : this.#slow(principal, origin, reason);
  }

  #slow(principal: Known | Rejected, origin: LogInOrigin, reason: string): Principal | Promise<Principal> {
    this.#trail?.logInFailed(principal, origin, reason);
    const held = this.#failed?.note(origin, reason);
    return held?.then((isAnswered) => (isAnswered ? principal : tooMany)) ?? principal;
  }

  /** Undefined also while nobody can be judged. */
  #findFault(principal: Principal): string | undefined {
    try {
      return this.#policy.findFault(principal);
    } catch {
      return undefined;
    }
  }

  /** Without `named` the action concerns the whole broker. @throws BrokerError 100701, 100702, 200207. */
  authorize(caller: Caller, action: Action, named?: Named): void {
    const topic = named?.topic;
    this.#check(caller, named, { action, details: topic === undefined ? action : `${action} ${quote(topic)}` });
  }

  /** Whether one of several rights is there. @throws BrokerError as {@link authorize}, of the first. */
  authorizeAny(caller: Caller, actions: readonly [Action, ...Action[]], named: Named): void {
    const [first] = actions;
    const allowed = actions.find((action) => this.isAllowed(caller, action, named));
    this.authorize(caller, allowed ?? first, named);
  }

  /**
   * Callbacks outlast a token: they are made by what its principal may have without one. Where that does not contain the filter, nothing would be
   * delivered. @throws BrokerError as {@link authorize}.
   */
  authorizeCallback(caller: Caller, named: Named & { readonly topic: string }): void {
    this.authorize(caller, "subscribe", named);
    const { principal } = caller;
    if (principal.kind !== "known" || principal.token === undefined) return;
    const receives = this.#receiver(principal.id, orDefaultGroup(named.groupId, this.#defaultGroupId));
    if (this.#policy.mayDeliver(principal.id) && receives(named.topic)) return;
    const remedy = "create a key for its principal, or give its issuer lastingRoles, with the right to subscribe";
    throw new BrokerError("accessDenied", { details: `callbacks outlast a token; ${remedy} to ${quote(named.topic)}` });
  }

  /** Whether somebody who is admitted has a right. */
  isAllowed(caller: Caller, action: Action, { groupId, topic }: Named): boolean {
    return this.#policy.allows(caller, action, { groupId: orDefaultGroup(groupId, this.#defaultGroupId), topic });
  }

  /** Whether somebody who is admitted has a right to some topics at least. */
  allowsSome(caller: Caller, action: RuleAction): boolean {
    return this.#policy.allows(caller, action === "admin" ? "administer" : action, everything);
  }

  /** Whether the caller may be connected. @throws BrokerError 100701, 200207. */
  admit({ principal }: Pick<Caller, "principal">): void {
    const fault = this.#policy.findFault(principal);
    if (fault !== undefined) throw new BrokerError("credentialRefused", { details: fault });
  }

  /** Counts publishes that are about to be submitted, all or none. @throws BrokerError 200301. */
  countPublishes(caller: Caller, calls: readonly PublishCall[]): void {
    this.#quotas?.countPublishes(caller, calls);
  }

  /** Calls back in a later turn, to refuse then; false where it has to be done now. */
  holdRefusal(answer: () => void): boolean {
    return this.#quotas?.refusals.hold(answer) === true;
  }

  /** Counts a caller's connection, as `Quotas.countConnection` does, until it ends or the returned function is called. @throws BrokerError 200301. */
  countConnection(caller: Caller, session?: string): () => void {
    return this.#quotas?.countConnection(caller, session) ?? (() => {});
  }

  /** What bounds what somebody may store of some things. */
  storedQuotas(owner: string | undefined, things: readonly StoredThing[]): readonly StoredQuota[] {
    return this.#quotas?.storedQuotas(toOwner(owner), things) ?? [];
  }

  /** Returns what waits for the turn of a callback to a subscription, and is undefined where it may be made at once. */
  callbackTurnOf({ principal }: Subscription): (signal: CancelSignal) => Promise<void> | undefined {
    const owner = toOwner(principal);
    return (signal) => this.#quotas?.callbackTurn(owner, signal);
  }

  /** Why everybody is refused at the moment; undefined where nobody is for that. */
  findTrouble(): string | undefined {
    return this.#policy.findTrouble();
  }

  /** What the operator has to see to; undefined for nothing. */
  findWarning(): string | undefined {
    const warnings = [this.#policy.findWarning(), this.#trail?.findTrouble()].filter((text) => text !== undefined);
    return warnings.length === 0 ? undefined : warnings.join("; ");
  }

  /** Whether a connection of the principal may go on. */
  isAdmitted(principal: Principal): boolean {
    return this.#findFault(principal) === undefined;
  }

  /** Whether the caller owns something, or may act as if it did. */
  owns(caller: Caller, owner: string | undefined): boolean {
    if (caller.principal.kind === "known" && caller.principal.id === owner) return true;
    return this.#policy.allows(caller, "administer", everything);
  }

  /** @throws BrokerError 100702 unless the caller {@link owns} it. */
  checkOwner(caller: Caller, owner: string | undefined): void {
    if (!this.owns(caller, owner)) throw new BrokerError("accessDenied", { details: "it is somebody else's" });
  }

  /** Whether the caller {@link owns} a subscription. @throws BrokerError 100702 where it does, and its rules let it end none with that filter. */
  mayRemove(caller: Caller, { owner, groupId, filter }: Removable): boolean {
    if (!this.owns(caller, owner)) return false;
    // The broker looked the filter up, so the refusal must not tell it.
    this.#check(caller, { groupId, topic: filter }, { action: "unsubscribe", details: "unsubscribe" });
    return true;
  }

  /**
   * An identifier of a subscription that a caller named. Only who has a tenant and an admin can name one of a tenant: a tenant's clients choose theirs
   * without regard to others. @throws BrokerError 100503, 100505.
   */
  parseSubscriptionId(caller: Caller, text: string): SubscriptionId {
    const { principal } = caller;
    if (principal.kind !== "known") return parseSubscriptionId(text);
    const mayName = namesOf(principal) !== undefined || this.owns(caller, undefined);
    return mayName ? parseAnySubscriptionId(text) : parseSubscriptionId(text);
  }

  /** The identifier of a new subscription. */
  createSubscriptionId({ principal }: Pick<Caller, "principal">, uuid: string): SubscriptionId {
    return namesOf(principal)?.createId(uuid) ?? parseSubscriptionId(uuid);
  }

  recall(owner: string): Principal {
    return this.#policy.recall(owner as Owner); // It was stored as one.
  }

  /** Whether the topics of events are such that the caller could name them: an event of another tenant does not exist for it. */
  finderFor({ principal }: Pick<Caller, "principal">): (topic: TopicName) => boolean {
    const names = namesOf(principal);
    return names === undefined ? () => true : (topic) => names.isOwn(topic);
  }

  /** The names of the tenant that owns a subscription; undefined for none. */
  namesFor({ principal }: Subscription): TenantNames | undefined {
    return namesOfOwner(toOwner(principal));
  }

  /** Returns the topics that may reach a subscription, and the filters with all that they match. */
  receiverOf({ groupId, principal }: Subscription): (topic: TopicName | TopicFilter) => boolean {
    return this.#receiver(toOwner(principal), groupId);
  }

  /** Whether the callbacks of a subscription may be made now. */
  mayDeliver({ principal }: Subscription): boolean {
    return this.#policy.mayDeliver(toOwner(principal));
  }

  /** @throws BrokerError 100702 unless the rules of its token, or of all its valid keys together, let a principal receive every event that matches a filter. */
  checkReceiver({ principal }: Pick<Caller, "principal">, groupId: GroupId, filter: TopicFilter): void {
    if (this.receiverFor(principal, groupId)(filter)) return;
    throw new BrokerError("accessDenied", {
      details: `a key or token of the principal denies a part of ${quote(filter)}`,
    });
  }

  /** Returns which topics of a group may reach a principal, and which filters with all that they match. */
  receiverFor(principal: Principal, groupId: GroupId): (topic: TopicName | TopicFilter) => boolean {
    if (principal.kind !== "known" || principal.token === undefined) {
      return this.#receiver(ownerOf(principal), groupId);
    }
    const { rules } = principal;
    return within(namesOf(principal), (topic) => rules.allows("subscribe", { groupId, topic }));
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
    if (topic !== undefined) this.#checkForm(topic, { caller, action, groupId });
    throw new BrokerError("accessDenied", { details });
  }

  /**
   * No rule's filter covers a malformed name. A caller with the right to other names learns what is wrong with the name. @throws BrokerError as
   * `parseTopicFilter`.
   */
  #checkForm(topic: string, { caller, action, groupId }: Asking): void {
    if (isTopicFilter(topic) || !this.#policy.allows(caller, action, { groupId, topic: undefined })) return;
    parseTopicFilter(topic);
  }

  #receiver(owner: Owner, groupId: string): Receiver {
    return within(namesOfOwner(owner), (topic) => this.#policy.mayReceive(owner, { groupId, topic }));
  }
}

/** Takes a topic or a filter. */
type Receiver = (topic: string) => boolean;

/** A tenant's `#` matches the topic that is called as the tenant itself is, which no client of it can name. */
function within(names: TenantNames | undefined, mayReceive: Receiver): Receiver {
  return names === undefined ? mayReceive : (topic) => names.isOwn(topic) && mayReceive(topic);
}

function toOwner(principal: string | undefined): Owner {
  return (principal ?? nobody) as Owner; // It was stored as one.
}
