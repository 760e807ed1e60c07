import type { SubscriptionId } from "../domain/subscription.ts";
import type { Topic } from "../domain/topic.ts";
import type { Access } from "./access/access.ts";
import type { Caller } from "./access/caller.ts";
import type { Action } from "./access/policy.ts";
import type {
  Attachment,
  AttachOrder,
  Broker,
  EventCall,
  EventResult,
  GroupHealth,
  ListCall,
  ListResult,
  NodeHealth,
  NodeListing,
  OnSettled,
  ProofResult,
  PublishCall,
  ReleaseCall,
  SkippedEntriesCall,
  SkippedEntriesResult,
  SubscribeCall,
  TopicCall,
  UnsubscribeCall,
} from "./broker.ts";
import type { Groups } from "./group.ts";
import type { Inlet } from "./publish/inlet.ts";
import type { EventQuery } from "./query/event-query.ts";
import type { ProofQuery } from "./query/proof-query.ts";
import type { SkippedEntriesQuery } from "./query/skipped-entries-query.ts";
import type { SubscriptionQuery } from "./query/subscription-query.ts";
import type { Peer } from "./session/peer.ts";
import type { Sessions } from "./session/sessions.ts";
import type { SubscriptionService } from "./subscribe/subscription-service.ts";
import type { TopicService } from "./topics/topic-service.ts";

export interface GuardedBrokerParts {
  readonly access: Access;
  readonly groups: Groups;
  readonly topics: TopicService;
  readonly inlet: Inlet;
  readonly sessions: Sessions;
  readonly subscriptions: SubscriptionService;
  readonly subscriptionQuery: SubscriptionQuery;
  readonly skippedEntries: SkippedEntriesQuery;
  readonly events: EventQuery;
  readonly proofs: ProofQuery;
  readonly groupHealth: () => readonly GroupHealth[];
  readonly nodeHealth: () => NodeHealth | undefined;
}

/** Asks for the right to each call before anything else, then hands the call to the part that answers it. */
export class GuardedBroker implements Broker {
  readonly #parts: GuardedBrokerParts;

  constructor(parts: GuardedBrokerParts) {
    this.#parts = parts;
  }

  async open(caller: Caller, call: TopicCall): Promise<void> {
    this.#parts.access.authorize(caller, "open", call);
    await this.#parts.topics.open(call);
  }

  async close(caller: Caller, call: TopicCall): Promise<void> {
    this.#parts.access.authorize(caller, "close", call);
    await this.#parts.topics.close(call);
  }

  async exist(caller: Caller, call: TopicCall): Promise<boolean> {
    this.#parts.access.authorize(caller, "read", call);
    return this.#parts.topics.exist(call);
  }

  async state(caller: Caller, call: TopicCall): Promise<Topic> {
    this.#parts.access.authorize(caller, "read", call);
    return this.#parts.topics.state(call);
  }

  async list(caller: Caller, call: ListCall): Promise<ListResult> {
    this.#parts.access.authorize(caller, "read", call);
    return this.#parts.topics.list(call);
  }

  submit(caller: Caller, call: PublishCall, onSettled: OnSettled): void {
    this.#parts.access.authorize(caller, "publish", call);
    this.#parts.inlet.submit(call, onSettled);
  }

  /** Says nothing of a topic, so no right is asked for: the submission that follows asks. */
  whenRoom(_caller: Caller, groupId: string | undefined, callback: () => void): boolean {
    return this.#parts.inlet.whenRoom(groupId, callback);
  }

  /** Concerns the session alone, so no right is asked for. */
  async release(_caller: Caller, call: ReleaseCall): Promise<boolean> {
    return this.#parts.inlet.release(call);
  }

  /** A connection has rights to what it does, not to be there: they are asked for each filter and each publish. */
  async attach(caller: Caller, order: AttachOrder, peer: Peer): Promise<Attachment> {
    if (order.will !== undefined) this.#parts.inlet.check(order.will.call);
    return this.#parts.sessions.attach(caller, order, peer);
  }

  async subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId> {
    this.#parts.access.authorize(caller, "subscribe", call);
    return this.#parts.subscriptions.subscribe(call);
  }

  async unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void> {
    this.#parts.access.authorize(caller, "unsubscribe");
    await this.#parts.subscriptions.unSubscribe(caller, call);
  }

  async getEvent(caller: Caller, call: EventCall): Promise<EventResult> {
    const { access, groups, events } = this.#parts;
    access.authorize(caller, "read", { groupId: call.groupId });
    const event = await events.get(groups.get(call.groupId), call.eventId);
    access.authorize(caller, "read", { groupId: call.groupId, topic: event.topic });
    return event;
  }

  /** Finds the event first, so that no proof is made for a caller who may not read its topic. */
  async getProof(caller: Caller, call: EventCall): Promise<ProofResult> {
    await this.getEvent(caller, call);
    const { groups, proofs } = this.#parts;
    return proofs.get(groups.get(call.groupId), call.eventId);
  }

  async listSubscriptions(caller: Caller): Promise<readonly NodeListing[]> {
    this.#parts.access.authorize(caller, "administer");
    return this.#parts.subscriptionQuery.list();
  }

  async listSkippedEntries(caller: Caller, call: SkippedEntriesCall): Promise<SkippedEntriesResult> {
    this.#parts.access.authorize(caller, "administer", { groupId: call.groupId });
    return this.#parts.skippedEntries.list(call);
  }

  health(caller: Caller): readonly GroupHealth[] {
    this.#parts.access.authorize(caller, "health");
    return this.#parts.groupHealth();
  }

  node(caller: Caller): NodeHealth | undefined {
    this.#parts.access.authorize(caller, "health");
    return this.#parts.nodeHealth();
  }

  authorize(caller: Caller, action: Action): void {
    this.#parts.access.authorize(caller, action);
  }
}
