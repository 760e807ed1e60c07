import type { CallerRights } from "../access/caller-rights.ts";
import type { TenantNames } from "../../domain/tenant-names.ts";
import { toClientsId, type SubscriptionId } from "../../domain/subscription.ts";
import { isPattern, parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Topic } from "../../domain/topic.ts";
import type { Caller, Principal } from "../access/caller.ts";
import type { LogInOrigin } from "../access/failed-log-ins.ts";
import type { Action } from "../access/policy.ts";
import { tenantNamesOf } from "../access/tenant.ts";
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
  OriginSource,
  ProofResult,
  PublishCall,
  PublishOutcome,
  PublishResult,
  SkippedEntriesCall,
  SkippedEntriesResult,
  TailCall,
  TopicCall,
  TransactionOutcome,
  UnsubscribeCall,
} from "../broker.ts";
import type { ReleaseCall } from "../key-session.ts";
import { realOf } from "../event-view.ts";
import type { Peer } from "../session/peer.ts";
import { attachInTenant } from "./tenant-attach.ts";
import { inWordsOf, type Naming } from "./tenant-errors.ts";
import { TenantPeer } from "./tenant-peer.ts";
import type { SubscribeCall } from "../subscribe-call.ts";

/**
 * Adds the prefix of the caller's tenant to each name in a call, and strips it from each name in the answer, except in proofs. So two tenants never see each
 * other's topics, events and identifiers. A caller without a tenant sees the real names. The wrapped broker checks rights, on the real names.
 */
export class TenantBroker implements Broker {
  readonly #real: Broker;

  constructor(real: Broker) {
    this.#real = real;
  }

  open(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#onTopic(caller, call, (real) => this.#real.open(caller, real));
  }

  close(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#onTopic(caller, call, (real) => this.#real.close(caller, real));
  }

  exist(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#onTopic(caller, call, (real) => this.#real.exist(caller, real));
  }

  async state(caller: Caller, call: TopicCall): Promise<Topic> {
    const names = tenantNamesOf(caller.principal);
    const topic = await this.#onTopic(caller, call, (real) => this.#real.state(caller, real));
    return names === undefined ? topic : toView(names, topic);
  }

  async list(caller: Caller, call: ListCall): Promise<ListResult> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.list(caller, call);
    const naming = { view: "#", real: names.toReal("#") };
    const page = await within(names, [naming], () => this.#real.list(caller, call));
    return { ...page, topics: page.topics.map((topic) => toView(names, topic)) };
  }

  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.submit(caller, call, onSettled);
    const namings = [toNaming(names, call.topic)];
    const settle = (outcome: PublishOutcome): void => onSettled(toViewOutcome(names, outcome, namings));
    try {
      this.#real.submit(caller, { ...call, topic: names.toReal(call.topic) }, settle);
    } catch (error) {
      throw inWordsOf(names, error, namings);
    }
  }

  submitAll(caller: Caller, calls: readonly PublishCall[], onSettled: OnTransactionSettled): void {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.submitAll(caller, calls, onSettled);
    const namings = calls.map(({ topic }) => toNaming(names, topic));
    const settle = (outcome: TransactionOutcome): void => onSettled(toViewTransaction(names, outcome, namings));
    try {
      this.#real.submitAll(caller, toRealCalls(names, calls), settle);
    } catch (error) {
      throw inWordsOf(names, error, namings);
    }
  }

  pass(caller: Caller, call: PublishCall): Promise<void> | undefined {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.pass(caller, call);
    const naming = toNaming(names, call.topic);
    try {
      return this.#real.pass(caller, { ...call, topic: naming.real });
    } catch (error) {
      throw inWordsOf(names, error, [naming]);
    }
  }

  /** Needs no real names: the names of topics do not affect room. */
  whenRoom(caller: Caller, calls: readonly PublishCall[], callback: () => void): boolean {
    return this.#real.whenRoom(caller, calls, callback);
  }

  release(caller: Caller, call: ReleaseCall): Promise<boolean> {
    return this.#real.release(caller, call);
  }

  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#real.authenticate(credential, origin);
  }

  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#real.refuseLogIn(reason, origin);
  }

  mayConnect(findAddress: () => string | undefined): boolean {
    return this.#real.mayConnect(findAddress);
  }

  admit(caller: Caller): void {
    this.#real.admit(caller);
  }

  attach(caller: Caller, request: AttachRequest, peer: Peer): Promise<Attachment> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.attach(caller, request, peer);
    const { will, stream, key } = request;
    const namings = [
      ...(will === undefined ? [] : [toNaming(names, will.call.topic)]),
      ...toFilterNamings(names, stream?.filters ?? []),
      toIdNaming(names, key),
    ];
    const attach = (real: AttachRequest, realPeer: Peer) => this.#real.attach(caller, real, realPeer);
    return within(names, namings, () => attachInTenant({ names, attach }, request, peer));
  }

  tail(caller: Caller, call: TailCall, peer: Peer): Promise<Pick<Attachment, "end">> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.tail(caller, call, peer);
    const namings = toFilterNamings(names, call.filters);
    const inTenant = new TenantPeer(peer, names); // Needs no session: a tail gets no events of a share.
    const filters = namings.map(({ real }) => real);
    const onConnected: TailCall["onConnected"] = (session, start, origins) =>
      call.onConnected(session, start, toViewOrigins(origins));
    return within(names, namings, () => this.#real.tail(caller, { ...call, filters, onConnected }, inTenant));
  }

  async subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.subscribe(caller, call);
    const { subscriptionId: id } = call;
    const subscriptionId = id === undefined ? undefined : names.toRealId(id);
    // A text without a wildcard is the name of a topic, even if it begins with `$share/`.
    const topic = isPattern(call.topic) ? toFilterNaming(names, call.topic) : toNaming(names, call.topic);
    const namings = [topic, toIdNaming(names, id ?? "")];
    const real = { ...call, topic: topic.real, subscriptionId };
    return toClientsId(await within(names, namings, () => this.#real.subscribe(caller, real)));
  }

  unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return this.#real.unSubscribe(caller, call);
    const naming = toIdNaming(names, call.subscriptionId);
    return within(names, [naming], () => this.#real.unSubscribe(caller, { subscriptionId: naming.real }));
  }

  async getEvent(caller: Caller, call: EventCall): Promise<EventResult> {
    const names = tenantNamesOf(caller.principal);
    const event = await this.#real.getEvent(caller, call);
    return names === undefined ? event : { ...event, topic: toViewName(names, event.topic) };
  }

  /** The topic keeps its real name, which the proof contains. */
  getProof(caller: Caller, call: EventCall): Promise<ProofResult> {
    return this.#real.getProof(caller, call);
  }

  listSubscriptions(caller: Caller): Promise<readonly NodeListing[]> {
    return this.#real.listSubscriptions(caller);
  }

  listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult> {
    return this.#real.listSkippedEntries(caller, call);
  }

  rightsOf(caller: Caller): CallerRights {
    return this.#real.rightsOf(caller);
  }

  health(caller: Caller, groupId?: string): readonly GroupHealth[] {
    return this.#real.health(caller, groupId);
  }

  node(caller: Caller): NodeHealth | undefined {
    return this.#real.node(caller);
  }

  authorize(caller: Caller, action: Action, named?: NamedFilter): void {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined || named === undefined) return this.#real.authorize(caller, action, named);
    const naming = toFilterNaming(names, named.topic);
    try {
      this.#real.authorize(caller, action, { ...named, topic: naming.real });
    } catch (error) {
      throw inWordsOf(names, error, [naming]);
    }
  }

  #onTopic<Result>(caller: Caller, call: TopicCall, run: (real: TopicCall) => Promise<Result>): Promise<Result> {
    const names = tenantNamesOf(caller.principal);
    if (names === undefined) return run(call);
    const naming = toNaming(names, call.topic);
    return within(names, [naming], () => run({ ...call, topic: naming.real }));
  }
}

async function within<Result>(
  names: TenantNames,
  namings: readonly Naming[],
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw inWordsOf(names, error, namings);
  }
}

function toNaming(names: TenantNames, view: string): Naming {
  return { view, real: names.toReal(view), check: parseTopicName };
}

function toFilterNaming(names: TenantNames, view: string): Naming {
  return { view, real: names.toRealFilter(view), check: parseTopicFilter };
}

function toFilterNamings(names: TenantNames, views: readonly string[]): readonly Naming[] {
  return views.map((view) => toFilterNaming(names, view));
}

function toIdNaming(names: TenantNames, view: string): Naming {
  return { view, real: names.toRealId(view) };
}

function toRealCalls(names: TenantNames, calls: readonly PublishCall[]): readonly PublishCall[] {
  return calls.map((call) => ({ ...call, topic: names.toReal(call.topic) }));
}

/** The chain knows the origin of an event by its topic's real name. */
function toViewOrigins(origins: OriginSource): OriginSource {
  return {
    find: (event) => origins.find(realOf(event)),
    load: (event, signal) => origins.load(realOf(event), signal),
  };
}

function toView(names: TenantNames, topic: Topic): Topic {
  return { ...topic, name: toViewName(names, topic.name) };
}

function toViewName(names: TenantNames, real: TopicName): TopicName {
  const view = names.toView(real);
  if (view === undefined) throw new Error("an answer names a topic of another tenant");
  return view as TopicName; // The index has only topics whose real names are valid.
}

function toViewResult(names: TenantNames, result: PublishResult): PublishResult {
  return { ...result, topic: names.toView(result.topic) ?? "" };
}

function toViewOutcome(names: TenantNames, outcome: PublishOutcome, namings: readonly Naming[]): PublishOutcome {
  if (outcome.status === "REFUSED") return { ...outcome, error: inWordsOf(names, outcome.error, namings) };
  return toViewResult(names, outcome);
}

function toViewTransaction(
  names: TenantNames,
  outcome: TransactionOutcome,
  namings: readonly Naming[],
): TransactionOutcome {
  if (outcome.status === "REFUSED") return { ...outcome, error: inWordsOf(names, outcome.error, namings) };
  if (outcome.status === "TIMEOUT") return outcome;
  return { ...outcome, results: outcome.results.map((result) => toViewResult(names, result)) };
}
