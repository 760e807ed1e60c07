import { BrokerError, quote } from "@stele/wire";
import { checkSecret, parseSubscriptionId, type Subscription, type SubscriptionId } from "../../domain/subscription.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { isPattern, parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { Sink } from "../../ports/sink.ts";
import type { Store } from "../../ports/store.ts";
import type { SubscribeCall, UnsubscribeCall } from "../broker.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { EventQuery } from "../query/event-query.ts";
import { findStartPosition } from "./start-position.ts";

export interface SubscriptionServiceParts {
  readonly groups: Groups;
  readonly store: Store;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly dispatcher: Dispatcher;
  readonly progressWriter: ProgressWriter;
  readonly events: EventQuery;
  /** False when subscriptions live in this process only (DESIGN section 7, `coordination: none`). */
  readonly hasCoordinator: boolean;
}

/** What a subscribe call asks for, checked. */
interface Order {
  readonly group: Group;
  readonly filter: TopicFilter;
  readonly call: SubscribeCall;
}

/** Makes, continues and removes subscriptions. Calls for one identifier are handled one after the other. */
export class SubscriptionService {
  readonly #parts: SubscriptionServiceParts;
  readonly #turns = new KeyedMutex<SubscriptionId>();
  #count = 0;

  constructor(parts: SubscriptionServiceParts) {
    this.#parts = parts;
  }

  /** Counts what there is. Delivery begins with {@link resume}. */
  async start(): Promise<void> {
    this.#count = (await this.#parts.store.listSubscriptions()).length;
  }

  /**
   * Starts delivery to every active callback subscription of a group that has none yet. Assumes that the group's index has caught up, and
   * that it takes no calls meanwhile. The index does not go back between the reading of a cursor and the start of its worker.
   */
  async resume(groupId: GroupId): Promise<void> {
    await this.#parts.groups.find(groupId)?.changes.shared(async () => this.#startWorkers(groupId));
  }

  async #startWorkers(groupId: GroupId): Promise<void> {
    const { store, dispatcher } = this.#parts;
    for (const subscription of await store.listSubscriptions()) {
      const isIdle = subscription.state === "active" && dispatcher.findWorker(subscription.id) === undefined;
      if (isIdle && subscription.groupId === groupId) dispatcher.add(subscription);
    }
  }

  /**
   * Answers once the subscription is on disk; every matching event from its start on will be notified.
   * @throws BrokerError 100101, 100102, 100103, 100106, 100108, 100109, 100306, 100501, 100503, 100505, 200001, 200211, 200300; of an offset 100302 to 100304.
   */
  async subscribe(call: SubscribeCall): Promise<SubscriptionId> {
    const filter = parseTopicFilter(call.topic);
    const group = this.#parts.groups.get(call.groupId);
    const id = this.#toId(call.subscriptionId);
    checkSecret(call.secret);
    if (!isPattern(filter)) await group.getTopic(parseTopicName(filter));
    await this.#parts.sink.checkUrl(call.url);
    const make = (): Promise<void> => this.#makeOrContinue(id, { group, filter, call });
    await this.#turns.run(id, () => group.changes.shared(make));
    return id;
  }

  /** @throws BrokerError 100503, 100504, 100505, 100601. */
  async unSubscribe(call: UnsubscribeCall): Promise<void> {
    if (call.interfaceType === "JsonRPC" && !this.#parts.hasCoordinator) throw new BrokerError("noCoordinator");
    const id = parseSubscriptionId(call.subscriptionId);
    await this.#turns.run(id, () => this.#remove(id));
  }

  /**
   * Keeps the cursor of a subscription to which `worker` has given up, until somebody subscribes again. It does nothing when another
   * worker has taken over meanwhile; it never rejects.
   */
  async suspend(id: SubscriptionId, worker: DeliveryWorker): Promise<void> {
    const { dispatcher, store, logger } = this.#parts;
    try {
      await this.#turns.run(id, async () => {
        if (dispatcher.findWorker(id) !== worker) return;
        try {
          await store.setSubscriptionState(worker.progress, "suspended");
        } finally {
          // A worker that has ended must not stand in the way of whoever subscribes again.
          dispatcher.detach(id);
        }
        logger.warn("subscription suspended", { subscriptionId: id });
      });
    } catch (error) {
      logger.error("subscription not suspended", { subscriptionId: id, error });
    }
  }

  #toId(text: string | undefined): SubscriptionId {
    return parseSubscriptionId(text ?? this.#parts.randomness.uuid());
  }

  async #makeOrContinue(id: SubscriptionId, order: Order): Promise<void> {
    // A worker that has just ended may have acknowledged more than its row says.
    if (order.call.subscriptionId !== undefined) await this.#parts.progressWriter.flush();
    const existing = await this.#parts.store.findSubscription(id);
    if (existing === undefined) await this.#make(id, order);
    else await this.#continue(existing, order);
  }

  async #make(id: SubscriptionId, order: Order): Promise<void> {
    const { store, clock, events, limits, dispatcher } = this.#parts;
    if (this.#count >= limits.subscriptionsMax) {
      throw new BrokerError("busy", { details: `${limits.subscriptionsMax} subscriptions are the limit` });
    }
    const { group, filter, call } = order;
    const now = clock.now();
    const subscription: Subscription = {
      id,
      filter,
      groupId: group.id,
      interfaceType: call.interfaceType,
      url: call.url,
      secret: call.secret,
      state: "active",
      cursor: await findStartPosition(events, group, call.offset),
      notifiedCount: 0,
      notifiedAt: now,
      createdAt: now,
      owner: undefined,
      epoch: 0,
    };
    const { generation } = (await store.findHead(group.id)) ?? { generation: 0 };
    if ((await store.insertSubscription(subscription, generation)) !== "inserted")
      throw new BrokerError("subscriptionElsewhere");
    this.#count += 1;
    dispatcher.add(subscription);
  }

  async #continue(existing: Subscription, order: Order): Promise<void> {
    const { group, filter, call } = order;
    if (existing.filter !== filter || existing.groupId !== group.id) {
      throw new BrokerError("subscriptionElsewhere", {
        details: `${quote(existing.filter)} of group ${existing.groupId}`,
      });
    }
    const change = {
      url: call.url,
      interfaceType: call.interfaceType,
      secret: call.secret ?? existing.secret,
      state: "active",
    } as const;
    const { dispatcher, store } = this.#parts;
    const isUnchanged = Object.entries(change).every(([key, value]) => existing[key as keyof typeof change] === value);
    if (isUnchanged && dispatcher.findWorker(existing.id) !== undefined) return;
    const current = { ...existing, ...(await dispatcher.remove(existing.id, 0)) };
    try {
      await store.updateSubscription(existing, change);
    } catch (error) {
      if (existing.state === "active") dispatcher.add(current);
      throw error;
    }
    dispatcher.add({ ...current, ...change });
  }

  async #remove(id: SubscriptionId): Promise<void> {
    const { store, dispatcher, progressWriter } = this.#parts;
    const existing = await store.findSubscription(id);
    if (existing === undefined || !(await store.deleteSubscription(existing)))
      throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    this.#count -= 1;
    await dispatcher.remove(id, 0);
    progressWriter.forget(id);
  }
}
