import { BrokerError } from "@stele/wire";
import type { CallerRights } from "./access/caller-rights.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import { findReceiver } from "../domain/receiver.ts";
import type { Topic } from "../domain/topic.ts";
import type { AuditSubject, AuditTrail } from "./access/audit-trail.ts";
import type { Caller, Principal } from "./access/caller.ts";
import type { LogInOrigin } from "./access/failed-log-ins.ts";
import type { Action } from "./access/policy.ts";
import { auditAttachment } from "./audited-attachment.ts";
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
import { isFateUnknown } from "./publish/refusals.ts";
import type { Peer } from "./session/peer.ts";
import type { SubscribeCall } from "./subscribe-call.ts";

/** A call as the audit log names it. */
interface Audited {
  readonly caller: Caller;
  readonly action: string;
  readonly subject: AuditSubject;
}

/** Passes each call on to `calls`, and writes to the audit log what callers changed, what operators and tails read, and which calls were refused. */
export class AuditedBroker implements Broker {
  readonly #calls: Broker;
  readonly #trail: AuditTrail;

  constructor(calls: Broker, trail: AuditTrail) {
    this.#calls = calls;
    this.#trail = trail;
  }

  open(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#set({ caller, action: "open", subject: toTopic(call) }, () => this.#calls.open(caller, call));
  }

  close(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#set({ caller, action: "close", subject: toTopic(call) }, () => this.#calls.close(caller, call));
  }

  exist(caller: Caller, call: TopicCall): Promise<boolean> {
    return this.#ask({ caller, action: "exist", subject: toTopic(call) }, () => this.#calls.exist(caller, call));
  }

  state(caller: Caller, call: TopicCall): Promise<Topic> {
    return this.#ask({ caller, action: "state", subject: toTopic(call) }, () => this.#calls.state(caller, call));
  }

  list(caller: Caller, call: ListCall): Promise<ListResult> {
    const subject = { groupId: call.groupId };
    return this.#ask({ caller, action: "list", subject }, () => this.#calls.list(caller, call));
  }

  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void {
    const audited = { caller, action: "publish", subject: toTopic(call) };
    const { placement } = call;
    let isOpening = false;
    const onOpening = (): void => {
      placement?.onOpening?.();
      isOpening = true;
    };
    const isWatched = placement?.onOpening !== undefined;
    const watched = isWatched ? { ...call, placement: { ...placement, onOpening } } : call;
    const settle: OnSettled = (outcome) => {
      if (outcome.status === "REFUSED") this.#fail(audited, outcome.error);
      else if (isOpening) this.#opened({ ...audited, action: "open" }, outcome.status);
      onSettled(outcome);
    };
    this.#askNow(audited, () => this.#calls.submit(caller, watched, settle));
  }

  submitAll(caller: Caller, calls: readonly PublishCall[], onSettled: OnTransactionSettled): void {
    const [first] = calls;
    const audited = { caller, action: "publish", subject: first === undefined ? {} : toTopic(first) };
    const settle: OnTransactionSettled = (outcome) => {
      if (outcome.status === "REFUSED") this.#fail(audited, outcome.error);
      onSettled(outcome);
    };
    this.#askNow(audited, () => this.#calls.submitAll(caller, calls, settle));
  }

  pass(caller: Caller, call: PublishCall): Promise<void> | undefined {
    return this.#askNow({ caller, action: "publish", subject: toTopic(call) }, () => this.#calls.pass(caller, call));
  }

  whenRoom(caller: Caller, calls: readonly PublishCall[], callback: () => void): boolean {
    return this.#calls.whenRoom(caller, calls, callback);
  }

  release(caller: Caller, call: ReleaseCall): Promise<boolean> {
    return this.#calls.release(caller, call);
  }

  /** Not audited here: `Access` itself audits failed log-ins. */
  authenticate(credential: string | undefined, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#calls.authenticate(credential, origin);
  }

  refuseLogIn(reason: string, origin: LogInOrigin): Principal | Promise<Principal> {
    return this.#calls.refuseLogIn(reason, origin);
  }

  mayConnect(findAddress: () => string | undefined): boolean {
    return this.#calls.mayConnect(findAddress);
  }

  admit(caller: Caller): void {
    this.#askNow({ caller, action: "connect", subject: {} }, () => this.#calls.admit(caller));
  }

  async attach(caller: Caller, request: AttachRequest, peer: Peer): Promise<Attachment> {
    const { groupId, stream, key: subscriptionId } = request;
    const subject = stream === undefined ? { groupId } : { groupId, topic: stream.filters.join("\n"), subscriptionId };
    const audited = { caller, action: stream === undefined ? "connect" : "subscribe", subject };
    const attachment = await this.#ask(audited, () => this.#calls.attach(caller, request, peer));
    if (stream !== undefined)
      this.#trail.recordStream(caller, "subscribe", { groupId, subscriptionId, filters: stream.filters });
    return auditAttachment(attachment, { caller, request, trail: this.#trail });
  }

  async tail(caller: Caller, call: TailCall, peer: Peer): Promise<Pick<Attachment, "end">> {
    const { groupId, filters } = call;
    const audited = { caller, action: "tail", subject: { groupId, topic: filters.join("\n") } };
    const opened = await this.#ask(audited, () => this.#calls.tail(caller, call, peer));
    this.#trail.recordStream(caller, "tail", { groupId, filters });
    return opened;
  }

  subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId> {
    const { subscriptionId } = call;
    const subject = { ...toTopic(call), receiver: findReceiver(call.url), subscriptionId };
    const audited = { caller, action: subscriptionId === undefined ? "subscribe" : "resubscribe", subject };
    return this.#change(
      audited,
      () => this.#calls.subscribe(caller, call),
      (made) => ({ subscriptionId: made }),
    );
  }

  async unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void> {
    const subject = { subscriptionId: call.subscriptionId };
    await this.#change({ caller, action: "unsubscribe", subject }, () => this.#calls.unSubscribe(caller, call));
  }

  getEvent(caller: Caller, call: EventCall): Promise<EventResult> {
    return this.#ask({ caller, action: "getEvent", subject: call }, () => this.#calls.getEvent(caller, call));
  }

  getProof(caller: Caller, call: EventCall): Promise<ProofResult> {
    return this.#ask({ caller, action: "getProof", subject: call }, () => this.#calls.getProof(caller, call));
  }

  /** Audits only a failure: one listing serves many callers, and {@link authorize} has already audited each of them. */
  listSubscriptions(caller: Caller): Promise<readonly NodeListing[]> {
    const audited = { caller, action: "listSubscription", subject: {} };
    return this.#ask(audited, () => this.#calls.listSubscriptions(caller));
  }

  async listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult> {
    const audited = { caller, action: "skippedEntries", subject: { groupId: call.groupId } };
    const listed = await this.#ask(audited, () => this.#calls.listSkippedEntries(caller, call));
    this.#trail.recordRead(caller, audited.action, audited.subject);
    return listed;
  }

  rightsOf(caller: Caller): CallerRights {
    return this.#askNow({ caller, action: "access", subject: {} }, () => this.#calls.rightsOf(caller));
  }

  health(caller: Caller, groupId?: string): readonly GroupHealth[] {
    return this.#askNow({ caller, action: "health", subject: { groupId } }, () => this.#calls.health(caller, groupId));
  }

  node(caller: Caller): NodeHealth | undefined {
    return this.#calls.node(caller);
  }

  /**
   * `inspect` only decides who sees the details of health, so its refusal is not audited. A check of a filter (`named`) reads nothing, so only its refusal
   * is audited.
   */
  authorize(caller: Caller, action: Action, named?: NamedFilter): void {
    if (action === "inspect") return this.#calls.authorize(caller, action);
    const subject = { groupId: named?.groupId, topic: named?.topic };
    this.#askNow({ caller, action, subject }, () => this.#calls.authorize(caller, action, named));
    if (named === undefined) this.#trail.recordRead(caller, action);
  }

  #opened({ caller, action, subject }: Audited, status: "SUCCESS" | "TIMEOUT"): void {
    if (status === "SUCCESS") this.#trail.recordChange(caller, action, subject);
    else this.#trail.recordFailure(caller, { action, error: new BrokerError("transactionTimeout") }, subject);
  }

  /** Runs an idempotent call and audits it. Returns whether it changed something. The chain may still make a change that timed out. */
  async #set(audited: Audited, task: () => Promise<boolean>): Promise<boolean> {
    const { caller, action, subject } = audited;
    const isChanged = await this.#ask(audited, task).catch((error: unknown) => {
      if (isFateUnknown(error)) this.#trail.recordFailure(caller, { action, error }, subject);
      throw error;
    });
    if (isChanged) this.#trail.recordChange(caller, action, subject);
    else this.#trail.recordRead(caller, action, subject);
    return isChanged;
  }

  async #change<Result>(
    audited: Audited,
    task: () => Promise<Result>,
    toMore: (result: Result) => AuditSubject = () => ({}),
  ): Promise<Result> {
    const result = await this.#ask(audited, task);
    const { caller, action, subject } = audited;
    this.#trail.recordChange(caller, action, { ...subject, ...toMore(result) });
    return result;
  }

  async #ask<Result>(audited: Audited, task: () => Promise<Result>): Promise<Result> {
    try {
      return await task();
    } catch (error) {
      this.#fail(audited, error);
      throw error;
    }
  }

  #askNow<T>(audited: Audited, task: () => T): T {
    try {
      return task();
    } catch (error) {
      this.#fail(audited, error);
      throw error;
    }
  }

  #fail({ caller, action, subject }: Audited, error: unknown): void {
    this.#trail.recordRefusal(caller, { action, error }, subject);
  }
}

function toTopic({ groupId, topic }: TopicCall): AuditSubject {
  return { groupId, topic };
}
