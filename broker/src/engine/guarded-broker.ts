import { BrokerError, quote, ruleActions } from "@stele/wire";
import type { CallerRights } from "./access/caller-rights.ts";
import { namesGroup } from "../domain/group-id.ts";
import { parseOwnFilter } from "../domain/shared-filter.ts";
import { madeSecretBytes, secretToMake, toSecret } from "../domain/signing-secret.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import type { Topic } from "../domain/topic.ts";
import type { Pauses } from "../lib/time-slices.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { Access } from "./access/access.ts";
import type { Caller, Principal } from "./access/caller.ts";
import type { LogInOrigin } from "./access/failed-log-ins.ts";
import type { Action } from "./access/policy.ts";
import { tenantNamesOf } from "./access/tenant.ts";
import type {
  Attachment,
  AttachRequest,
  Broker,
  EventCall,
  EventResult,
  GroupHealth,
  ListCall,
  ListResult,
  NamedFilter,
  NodeHealth,
  NodeListing,
  OnSettled,
  OnTransactionSettled,
  ProofResult,
  PublishCall,
  SkippedEntriesCall,
  SkippedEntriesResult,
  TailCall,
  TopicCall,
  UnsubscribeCall,
} from "./broker.ts";
import type { ReleaseCall } from "./key-session.ts";
import { CountedOpening, type TopicQuota } from "./access/topic-quota.ts";
import type { Groups } from "./group.ts";
import type { Inlet, Refusal } from "./publish/inlet.ts";
import type { EventQuery } from "./query/event-query.ts";
import { proofDenied, type ProofQuery } from "./query/proof-query.ts";
import type { SkippedEntriesQuery } from "./query/skipped-entries-query.ts";
import type { SubscriptionQuery } from "./query/subscription-query.ts";
import { nameOf } from "./session/filter-removal.ts";
import type { Peer } from "./session/peer.ts";
import { checkEach } from "./session/session-slices.ts";
import type { Sessions } from "./session/sessions.ts";
import type { Wills } from "./session/stored/wills.ts";
import type { Tails } from "./session/tails/tails.ts";
import type { SubscriptionService } from "./subscribe/subscription-service.ts";
import type { TopicService } from "./topics/topic-service.ts";
import type { SubscribeCall } from "./subscribe-call.ts";

export interface GuardedBrokerOptions {
  readonly access: Access;
  readonly groups: Groups;
  readonly topics: TopicService;
  readonly topicQuota: TopicQuota;
  readonly inlet: Inlet;
  readonly sessions: Sessions;
  readonly tails: Tails;
  readonly wills: Pick<Wills, "check">;
  readonly subscriptions: SubscriptionService;
  readonly subscriptionQuery: SubscriptionQuery;
  readonly skippedEntries: SkippedEntriesQuery;
  readonly events: EventQuery;
  readonly proofs: ProofQuery;
  readonly groupHealth: () => readonly GroupHealth[];
  readonly nodeHealth: () => NodeHealth | undefined;
  readonly randomness: Pick<Randomness, "bytes">;
  readonly slices: Pauses;
}

/** Checks the caller's right to a call before anything else, then passes the call to the part that answers it. */
export class GuardedBroker implements Broker {
  readonly #options: GuardedBrokerOptions;

  constructor(options: GuardedBrokerOptions) {
    this.#options = options;
  }

  async open(caller: Caller, call: TopicCall): Promise<boolean> {
    this.#options.access.authorize(caller, "open", call);
    return this.#options.topics.open(call, (opening) => this.#options.topicQuota.reserve(caller, opening));
  }

  async close(caller: Caller, call: TopicCall): Promise<boolean> {
    this.#options.access.authorize(caller, "close", call);
    return this.#options.topics.close(call);
  }

  async exist(caller: Caller, call: TopicCall): Promise<boolean> {
    // Any of these rights is enough: a publish or an open would also show whether the topic exists.
    this.#options.access.authorizeAny(caller, ["read", "publish", "open"], call);
    return this.#options.topics.exist(call);
  }

  async state(caller: Caller, call: TopicCall): Promise<Topic> {
    this.#options.access.authorize(caller, "read", call);
    return this.#options.topics.state(call);
  }

  /** The right to read `#` covers no topic that begins with `$`, so this checks each of those. A tenant sees only its own topics. */
  async list(caller: Caller, call: ListCall): Promise<ListResult> {
    const { access, topics } = this.#options;
    const { groupId } = call;
    const names = tenantNamesOf(caller.principal);
    access.authorize(caller, "read", { groupId, topic: names?.toReal("#") ?? "#" });
    const page = await topics.list(call, names?.ranges);
    const mayRead = (topic: string): boolean => access.isAllowed(caller, "read", { groupId, topic });
    return { ...page, topics: page.topics.filter(({ name }) => !name.startsWith("$") || mayRead(name)) };
  }

  /** Checks the right to open only if the topic turns out not to exist. */
  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void {
    const { access, inlet, groups, topicQuota } = this.#options;
    access.authorize(caller, "publish", call);
    const keyScope = keyScopeOf(caller.principal);
    const refuse: (refusal: Refusal) => void =
      call.isRepeat === true ? (refusal) => inlet.submitRefused(call, onSettled, { keyScope, refusal }) : onSettled;
    if (!this.#mayPublish(caller, [call], refuse)) return;
    const onOpening = call.placement?.onOpening;
    if (onOpening === undefined) return inlet.submit(call, onSettled, { keyScope });
    const opening = new CountedOpening();
    const authorizeOpening = async (): Promise<void> => {
      access.authorize(caller, "open", call);
      const { id: groupId } = groups.get(call.groupId);
      await opening.begin(topicQuota.reserve(caller, { groupId, name: call.topic }));
      onOpening();
    };
    const settled: OnSettled = (outcome) => {
      opening.settled(outcome);
      onSettled(outcome);
    };
    inlet.submit(call, settled, { keyScope, authorizeOpening });
  }

  /** Whether the quota allows these publishes. If not, calls `refuse` later. */
  #mayPublish(caller: Caller, calls: readonly PublishCall[], refuse: (outcome: Refusal) => void): boolean {
    const { access } = this.#options;
    try {
      access.countPublishes(caller, calls);
      return true;
    } catch (error) {
      access.holdRefusal(() => refuse({ status: "REFUSED", error }));
      return false;
    }
  }

  submitAll(caller: Caller, calls: readonly PublishCall[], onSettled: OnTransactionSettled): void {
    for (const call of calls) this.#options.access.authorize(caller, "publish", call);
    if (!this.#mayPublish(caller, calls, onSettled)) return;
    this.#options.inlet.submitAll(calls, onSettled);
  }

  pass(caller: Caller, call: PublishCall): Promise<void> | undefined {
    const { access, inlet } = this.#options;
    access.authorize(caller, "publish", call);
    access.countPublishes(caller, [call]);
    return inlet.pass(call);
  }

  /** Reveals nothing about a topic, so it checks no right; the later submission does. */
  whenRoom(_caller: Caller, calls: readonly PublishCall[], callback: () => void): boolean {
    return this.#options.inlet.whenRoom(calls, callback);
  }

  /** Concerns only the session, so it checks no right. */
  async release(_caller: Caller, call: ReleaseCall): Promise<boolean> {
    return this.#options.inlet.release(call);
  }

  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#options.access.authenticate(credential, origin);
  }

  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#options.access.refuseLogIn(reason, origin);
  }

  mayConnect(findAddress: () => string | undefined): boolean {
    return this.#options.access.mayConnect(findAddress);
  }

  admit(caller: Caller): void {
    this.#options.access.admit(caller);
    this.#options.access.countConnection(caller);
  }

  /**
   * The session checks the rights to each filter, and {@link submit} to each publish. Two principals never share a session, even if their clients have the same
   * identifier; but an admin may take over the stream of another principal.
   */
  async attach(caller: Caller, request: AttachRequest, peer: Peer): Promise<Attachment> {
    const { access, groups, sessions, wills } = this.#options;
    access.admit(caller);
    checkGroup(access, caller, request.groupId);
    if (request.will !== undefined) {
      access.authorize(caller, "publish", request.will.call);
      wills.check(request.will);
    }
    // The key of a stream is its subscription identifier, which only its owner or an admin may use.
    const key = request.stream === undefined ? sessionKeyOf(caller.principal, request.key) : request.key;
    access.countConnection(caller, nameOf({ ...request, key, groupId: groups.get(request.groupId).id }));
    // Count the will as a publish. Otherwise a client over its quota could publish wills by connecting again and again.
    if (request.will !== undefined) access.countPublishes(caller, [request.will.call]);
    return sessions.attach(caller, { ...request, key }, peer);
  }

  /** Checks the right to each filter; the tail checks the right to the topic of each event. */
  async tail(caller: Caller, call: TailCall, peer: Peer): Promise<Pick<Attachment, "end">> {
    const { access, tails, slices } = this.#options;
    access.admit(caller);
    const { groupId } = call;
    const parse = parseOwnFilter;
    const uncount = access.countConnection(caller); // Before the checks, which may wait: until then, its tails would have no limit.
    try {
      // The session checks them too, but this check comes first: it hides from others whether the group and the event where the tail begins exist.
      await checkEach(call.filters, { caller, slices }, (topic) => {
        access.authorize(caller, "subscribe", { groupId, topic, parse });
      });
      return await tails.open(caller, call, peer);
    } catch (error) {
      uncount(); // the client may use the connection for other calls
      throw error;
    }
  }

  async subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId> {
    const { access, subscriptions, randomness } = this.#options;
    access.authorizeCallback(caller, call);
    const { secret, onSecret } = call;
    if (secret !== secretToMake || onSecret === undefined) return subscriptions.subscribe(caller, call);
    const made = toSecret(randomness.bytes(madeSecretBytes));
    const id = await subscriptions.subscribe(caller, { ...call, secret: made });
    onSecret(made);
    return id;
  }

  async unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void> {
    this.#options.access.authorize(caller, "unsubscribe");
    await this.#options.subscriptions.unSubscribe(caller, call);
  }

  async getEvent(caller: Caller, call: EventCall): Promise<EventResult> {
    const { access, groups, events } = this.#options;
    const { groupId, eventId } = call;
    access.authorize(caller, "read", { groupId });
    const mayRead = (topic: string): boolean => access.isAllowed(caller, "read", { groupId, topic });
    return events.get(groups.get(groupId), eventId, mayRead);
  }

  /**
   * Finds the event first, so that a caller who may not read its topic gets no proof. A proof contains all logs of a transaction and the bloom filter of a
   * block: these may reveal other topics. So only callers who may read every topic get a proof, and no tenant does.
   */
  async getProof(caller: Caller, call: EventCall): Promise<ProofResult> {
    await this.getEvent(caller, call);
    if (tenantNamesOf(caller.principal) !== undefined) {
      throw new BrokerError("accessDenied", {
        details: "getProof is refused to tenants: a proof may name topics of other tenants",
      });
    }
    const { access, groups, proofs } = this.#options;
    const { groupId } = call;
    const mayRead = (topic: string): boolean => access.isAllowed(caller, "read", { groupId, topic });
    if (!mayRead("#")) throw proofDenied();
    return proofs.get(groups.get(groupId), call.eventId, mayRead);
  }

  async listSubscriptions(caller: Caller): Promise<readonly NodeListing[]> {
    this.#options.access.authorize(caller, "administer");
    return this.#options.subscriptionQuery.list();
  }

  async listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult> {
    this.#options.access.authorize(caller, "administer", { groupId: call.groupId });
    return this.#options.skippedEntries.list(call);
  }

  rightsOf(caller: Caller): CallerRights {
    const { access } = this.#options;
    access.admit(caller);
    const { principal } = caller;
    const [name, expiresAt] =
      principal.kind === "known" ? [principal.id, principal.expiresAt] : ([undefined, undefined] as const);
    return { principal: name, expiresAt, actions: ruleActions.filter((action) => access.allowsSome(caller, action)) };
  }

  /**
   * Reports a node that refuses everybody as not ready, so that a load balancer picks another node. The health of one group shows that the group exists, so
   * the caller needs some right in it.
   */
  health(caller: Caller, groupId?: string): readonly GroupHealth[] {
    const { access, groupHealth } = this.#options;
    access.authorize(caller, "health");
    if (groupId !== undefined) access.authorizeAny(caller, ["inspect", "read", "publish", "subscribe"], { groupId });
    const groups = groupHealth().filter((group) => groupId === undefined || group.groupId === groupId);
    if (groupId !== undefined && groups.length === 0) {
      throw new BrokerError("groupUnknown", { details: quote(groupId) });
    }
    const reason = access.findTrouble();
    return reason === undefined ? groups : groups.map((group) => ({ ...group, ready: false, reason }));
  }

  node(caller: Caller): NodeHealth | undefined {
    this.#options.access.authorize(caller, "health");
    return this.#options.nodeHealth();
  }

  /** Checks a filter as {@link tail} does, so that a HEAD request for a tail gets the same errors as a GET. */
  authorize(caller: Caller, action: Action, named?: NamedFilter): void {
    this.#options.access.authorize(caller, action, named && { ...named, parse: parseOwnFilter });
    if (named !== undefined) parseOwnFilter(named.topic);
  }
}

/** Hides from a caller without rights in a group whether the group exists. @throws BrokerError 100702. */
function checkGroup(access: Access, caller: Caller, groupId: string | undefined): void {
  const isAllowed = (action: Action): boolean => access.isAllowed(caller, action, { groupId });
  if (!namesGroup(groupId) || isAllowed("publish") || isAllowed("subscribe")) return;
  throw new BrokerError("accessDenied", { details: `publish or subscribe in the group ${quote(groupId)}` });
}

/** The scope in which a principal's publish keys are unique. */
function keyScopeOf(principal: Principal): string {
  return principal.kind === "known" ? `principal ${principal.id}` : "";
}

/** A session key that is unique among all principals: a principal's id contains no space. */
function sessionKeyOf(principal: Principal, key: string): string {
  return principal.kind === "known" ? `${principal.id} ${key}` : key;
}
