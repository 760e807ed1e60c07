import { BrokerError, quote } from "@stele/wire";
import {
  type CallbackSubscription,
  checkSecret,
  interfaceTypeOf,
  isCallback,
  parseSubscriptionId,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import { damagedSubscription } from "../integrity/mended-store.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { findReceiver } from "../../domain/receiver.ts";
import { isPattern, parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { Sink } from "../../ports/sink.ts";
import type { CallbackChange, Store } from "../../ports/store.ts";
import type { Caller } from "../access/caller.ts";
import type { SubscribeCall, UnsubscribeCall } from "../broker.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Troubles } from "../integrity/troubles.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { EventQuery } from "../query/event-query.ts";
import type { Ownership } from "./ownership.ts";
import { Resumption } from "./resumption.ts";
import { ReceiverQuota } from "./receiver-quota.ts";
import { findStartPosition } from "./start-position.ts";

export interface SubscriptionServiceParts {
  readonly groups: Groups;
  readonly store: Store;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly troubles: Troubles;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly events: EventQuery;
  readonly ownership: Ownership;
  /** In which calls for one identifier are handled one after the other. */
  readonly turns: KeyedMutex<SubscriptionId>;
  readonly slices: TimeSlices;
  /** Removes a filter of a session, and answers whether there was one. */
  readonly removeSessionFilter: (id: SubscriptionId) => Promise<boolean>;
  /** False when subscriptions live in this process only (DESIGN section 7, `coordination: none`). */
  readonly hasCoordinator: boolean;
}

/** What a subscribe call asks for, checked. */
interface Order {
  readonly group: Group;
  readonly filter: TopicFilter;
  readonly call: SubscribeCall;
  /** Who delivers it when it is a new one. */
  readonly owner: NodeId | undefined;
}

/** Tries of a call whose subscription changes its owner, or whose index rolls back, during the call. */
const triesMax = 10;

/** Hexadecimal digits at the end of a random UUID that are all random: 40 bits. */
const randomDigits = 10;

/** Makes, continues and removes subscriptions. Calls for one identifier are handled one after the other. */
export class SubscriptionService {
  readonly #parts: SubscriptionServiceParts;
  readonly #receivers: ReceiverQuota;
  readonly #resumption: Resumption;
  /** Where nobody else makes and removes any. */
  #count = 0;

  constructor(parts: SubscriptionServiceParts) {
    this.#parts = parts;
    this.#receivers = new ReceiverQuota(parts);
    this.#resumption = new Resumption(parts);
  }

  /** Counts what there is. Delivery begins with {@link resume}. */
  async start(): Promise<void> {
    this.#count = await this.#parts.store.countSubscriptions();
  }

  /** Delivery begins, page after page, to every active callback subscription of a group that has none yet; calls are taken meanwhile. */
  resume(groupId: GroupId): void {
    this.#resumption.begin(groupId);
  }

  /** Delivery begins again after a roll-back has stopped it; does nothing before {@link resume}. */
  restart(groupId: GroupId): void {
    this.#resumption.restart(groupId);
  }

  /** Starts no further delivery by itself. */
  async stop(): Promise<void> {
    await this.#resumption.stop();
  }

  /**
   * Answers once the subscription is on disk; every matching event from its start on will be notified.
   * @throws BrokerError 100101, 100102, 100103, 100106, 100108, 100109, 100306, 100501, 100503, 100505, 100506, 200001, 200207, 200211, 200300,
   * 200301; of an offset 100302 to 100304.
   */
  async subscribe(call: SubscribeCall): Promise<SubscriptionId> {
    const { groups, sink, ownership } = this.#parts;
    const filter = parseTopicFilter(call.topic);
    const group = groups.get(call.groupId);
    const id = this.#toId(call.subscriptionId);
    checkSecret(call.secret);
    if (!isPattern(filter)) await group.getTopic(parseTopicName(filter));
    await sink.checkTarget({ ...call, id, secret: await this.#secretFor(id, call) });
    await this.#inTurn(id, async () => {
      const owner = await ownership.owner();
      if (call.subscriptionId !== undefined) await ownership.claim(id);
      return group.changes.shared(() => this.#makeOrContinue(id, { group, filter, call, owner }));
    });
    return id;
  }

  /** @throws BrokerError 100503, 100504, 100505, 100601, 200207, 200300. */
  async unSubscribe({ protocol }: Caller, call: UnsubscribeCall): Promise<void> {
    const { hasCoordinator, ownership } = this.#parts;
    if (protocol === "JSON-RPC" && !hasCoordinator) throw new BrokerError("noCoordinator");
    const id = parseSubscriptionId(call.subscriptionId);
    await this.#inTurn(id, async () => {
      await ownership.claim(id);
      return this.#remove(id);
    });
  }

  /**
   * Keeps the cursor of a subscription to which `worker` has given up, until somebody subscribes again. It does nothing when another
   * worker has taken over meanwhile; it never rejects.
   */
  async suspend(id: SubscriptionId, worker: DeliveryWorker): Promise<void> {
    const { workers, turns, logger } = this.#parts;
    try {
      await turns.run(id, async () => {
        if (workers.find(id) === worker) await this.#suspend(worker);
      });
    } catch (error) {
      logger.error("subscription not suspended", { subscriptionId: id, error });
    }
  }

  async #suspend({ progress }: DeliveryWorker): Promise<void> {
    const { workers, progressWriter, store, logger } = this.#parts;
    try {
      // Whoever continues it at another node reads its row, and need not ask this one for it.
      await progressWriter.flush();
      const isSuspended = await store.setSubscriptionState(progress, "suspended");
      if (isSuspended) logger.warn("subscription suspended", { subscriptionId: progress.id });
    } finally {
      // A worker that has ended must not block a new subscribe call.
      workers.detach(progress.id);
    }
  }

  #toId(text: string | undefined): SubscriptionId {
    return parseSubscriptionId(text ?? this.#parts.randomness.uuid());
  }

  /** Repeats `task` while it returns false because the state that it read has changed. */
  async #inTurn(id: SubscriptionId, task: () => Promise<boolean>): Promise<void> {
    await this.#parts.turns.run(id, async () => {
      for (let tries = 0; tries < triesMax; tries += 1) if (await task()) return;
      throw new BrokerError("busy", { details: "the subscription, or the index, changes all the time" });
    });
  }

  /** Runs `task` while the group's index cannot roll back. */
  #unchanged<T>(groupId: GroupId, task: () => Promise<T>): Promise<T> {
    const group = this.#parts.groups.find(groupId);
    return group === undefined ? task() : group.changes.shared(task);
  }

  async #makeOrContinue(id: SubscriptionId, order: Order): Promise<boolean> {
    // A worker that has just ended may have acknowledged more than its row says.
    if (order.call.subscriptionId !== undefined) await this.#parts.progressWriter.flush();
    const existing = await this.#parts.store.findSubscription(id);
    const apply = (): Promise<boolean> =>
      existing === undefined ? this.#make(id, order) : this.#continue(existing, order);
    const { url } = order.call;
    const isThere = existing !== undefined && findReceiver(urlOf(existing) ?? "") === findReceiver(url);
    return isThere ? apply() : this.#receivers.run(url, apply);
  }

  /** What a receiver is asked with that a subscription continues to call. */
  async #secretFor(id: SubscriptionId, { subscriptionId, secret, url }: SubscribeCall): Promise<string | undefined> {
    if (subscriptionId === undefined || secret !== undefined) return secret;
    const existing = await this.#parts.store.findSubscription(id);
    const delivery = existing?.delivery;
    return delivery?.kind === "webhook" && delivery.url === url ? delivery.secret : undefined;
  }

  async #make(id: SubscriptionId, order: Order): Promise<boolean> {
    const { store, clock, limits, ownership } = this.#parts;
    if ((await this.#countAll()) >= limits.subscriptionsMax) {
      throw new BrokerError("busy", { details: `${limits.subscriptionsMax} subscriptions are the limit` });
    }
    const { group, filter, call, owner } = order;
    const now = clock.now();
    const { position, generation } = await findStartPosition(this.#parts, group, call.offset);
    const { format, url, secret } = call;
    const subscription: CallbackSubscription = {
      id,
      filter,
      groupId: group.id,
      delivery: { kind: "webhook", format, url, secret },
      state: "active",
      cursor: position,
      notifiedCount: 0,
      notifiedAt: now,
      failedAttempts: 0,
      failedMs: 0,
      createdAt: now,
      owner,
      epoch: this.#firstEpoch(),
    };
    if ((await store.insertSubscription(subscription, generation)) !== "inserted") return false;
    this.#count += 1;
    ownership.begin(subscription);
    return true;
  }

  /** None that an earlier row of this identifier can have had: a node that slept through the removal must not write this one. */
  #firstEpoch(): number {
    const { ownership, randomness } = this.#parts;
    return ownership.isShared ? Number.parseInt(randomness.uuid().slice(-randomDigits), 16) : 0;
  }

  async #countAll(): Promise<number> {
    return this.#parts.ownership.isShared ? this.#parts.store.countSubscriptions() : this.#count;
  }

  async #continue(stored: Subscription, order: Order): Promise<boolean> {
    const { workers, store, ownership, progressWriter } = this.#parts;
    const existing = toSame(stored, order);
    if (!ownership.isOwn(existing)) return false;
    const change = toChange(existing, order.call);
    const worker = workers.find(existing.id)?.progress;
    // A new subscribe call gives a failing receiver its full time again.
    if (isUnchanged(existing, change) && worker?.epoch === existing.epoch && worker.failedMs === 0) return true;
    const progress = await workers.remove(existing.id, 0);
    const current = progress?.epoch === existing.epoch ? { ...existing, ...progress } : existing;
    try {
      // What the worker noted at its end must not come after the change.
      if (progress !== undefined) await progressWriter.flush();
      if (!(await store.updateSubscription(existing, change))) return false;
    } catch (error) {
      if (existing.state === "active") ownership.begin(current);
      throw error;
    }
    ownership.begin({ ...current, ...change, failedAttempts: 0, failedMs: 0 });
    return true;
  }

  async #remove(id: SubscriptionId): Promise<boolean> {
    const { store, ownership } = this.#parts;
    const known = await store.findSubscription(id);
    if (known === undefined) {
      if (await this.#parts.removeSessionFilter(id)) return true;
      throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    }
    if (!ownership.isOwn(known)) return false;
    return this.#unchanged(known.groupId, () => this.#delete(known));
  }

  async #delete(known: Subscription): Promise<boolean> {
    const { store, workers, progressWriter } = this.#parts;
    if (!(await store.deleteSubscription(known))) return false;
    this.#count -= 1;
    await workers.remove(known.id, 0);
    progressWriter.forget(known);
    return true;
  }
}

/** @throws BrokerError 100108, 200208. */
function toSame(existing: Subscription, { group, filter }: Order): CallbackSubscription {
  if (existing.state === "damaged") throw damagedSubscription(existing.id);
  if (!isCallback(existing)) {
    const details = `a session of ${interfaceTypeOf(existing.delivery)} has it`;
    throw new BrokerError("subscriptionElsewhere", { details });
  }
  if (existing.filter === filter && existing.groupId === group.id) return existing;
  throw new BrokerError("subscriptionElsewhere", { details: `${quote(existing.filter)} of group ${existing.groupId}` });
}

/** What subscribing again changes. @throws BrokerError 200001. */
function toChange(existing: CallbackSubscription, call: SubscribeCall): CallbackChange {
  const { url, format } = call;
  const secret = call.secret ?? secretOf(existing, url);
  return { delivery: { kind: "webhook", format, url, secret }, state: "active" };
}

function isUnchanged({ delivery, state }: CallbackSubscription, change: CallbackChange): boolean {
  const { format, url, secret } = change.delivery;
  return state === change.state && delivery.format === format && delivery.url === url && delivery.secret === secret;
}

function urlOf({ delivery }: Subscription): string | undefined {
  return delivery.kind === "webhook" ? delivery.url : undefined;
}

/**
 * The secret of a subscription that continues and is not given one. A secret belongs to its url: who knows no more than the identifier gets
 * no signatures at another address. @throws BrokerError 200001 when it is kept and cannot be opened.
 */
function secretOf({ delivery, state }: CallbackSubscription, url: string): string | undefined {
  if (delivery.url !== url) return undefined;
  if (state !== "locked") return delivery.secret;
  const details = '"secret" must be given again: the one that this subscription has cannot be opened any more';
  throw new BrokerError("parameterInvalid", { details });
}
