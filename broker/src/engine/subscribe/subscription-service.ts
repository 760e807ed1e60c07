import { BrokerError, quote } from "@stele/wire";
import {
  type CallbackSubscription,
  interfaceTypeOf,
  isCallback,
  nothingFailed,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import { changeOptions } from "../../domain/delivery-options.ts";
import { damagedSubscription } from "../integrity/repairing-store.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { findReceiver } from "../../domain/receiver.ts";
import { parseCallbackFilter } from "../../domain/shared-filter.ts";
import { isPattern, type TopicFilter } from "../../domain/topic-filter.ts";
import { checkSecret, readSecrets } from "../../domain/signing-secret.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { LogFields, Logger } from "../../lib/logger.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { CallbackTarget, Sink } from "../../ports/sink.ts";
import type { Store } from "../../ports/store.ts";
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import { overStoredQuota } from "../access/quotas.ts";
import type { UnsubscribeCall } from "../broker.ts";
import type { AttemptHistory } from "../deliver/attempt-history.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Troubles } from "../integrity/troubles.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Group, Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import type { EventQuery } from "../query/event-query.ts";
import { isUnchanged, principalOf, toChange } from "./continued-delivery.ts";
import { checkFree, checkStillFree } from "./free-identifier.ts";
import type { Ownership } from "./ownership.ts";
import { Resumption } from "./resumption.ts";
import { SubscriptionQuota } from "./subscription-quota.ts";
import { findStartPosition } from "./start-position.ts";
import type { SubscribeCall } from "../subscribe-call.ts";

export interface SubscriptionServiceOptions {
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
  /** The lock of each identifier: calls for one identifier run one after the other. */
  readonly locks: KeyedMutex<SubscriptionId>;
  readonly history: AttemptHistory;
  /** Called after the service has ended a worker to suspend its subscription. */
  readonly onHeld: () => void;
  readonly slices: TimeSlices;
  /** Removes a filter of a session if the caller may remove it. Returns whether it was removed. */
  readonly removeSessionFilter: (id: SubscriptionId, caller: Caller) => Promise<boolean>;
  readonly access: Pick<
    Access,
    | "authorizeCallback"
    | "mayRemove"
    | "mayDeliver"
    | "checkOwner"
    | "storedQuotas"
    | "finderFor"
    | "parseSubscriptionId"
    | "createSubscriptionId"
  >;
  /** False when subscriptions live in this process only (the setting `coordination: none`). */
  readonly hasCoordinator: boolean;
}

/** A subscribe call that has passed all checks. */
interface CheckedCall {
  readonly group: Group;
  readonly filter: TopicFilter;
  readonly call: SubscribeCall;
  readonly caller: Caller;
  /** The node that delivers a new subscription. */
  readonly owner: NodeId | undefined;
}

/** Maximum number of tries of a call. A try fails if the subscription changes its owner or is removed, or the index rolls back, during the try. */
const triesMax = 10;

/** Hexadecimal digits at the end of a random UUID that are all random: 40 bits. */
const randomDigits = 10;

/** Makes, continues and removes subscriptions. Calls for one identifier are handled one after the other. */
export class SubscriptionService {
  readonly #options: SubscriptionServiceOptions;
  readonly #quota: SubscriptionQuota;
  readonly #resumption: Resumption;

  constructor(options: SubscriptionServiceOptions) {
    this.#options = options;
    this.#quota = new SubscriptionQuota(options);
    this.#resumption = new Resumption(options);
  }

  /** Starts delivery, page after page, to every active callback subscription of a group that has no worker yet. Calls are served meanwhile. */
  resume(groupId: GroupId): void {
    this.#resumption.begin(groupId);
  }

  /** Starts delivery again after a rollback has stopped it; does nothing before {@link resume}. */
  restart(groupId: GroupId): void {
    this.#resumption.restart(groupId);
  }

  /** Stops the starts of deliveries that {@link resume} began. */
  async stop(): Promise<void> {
    await this.#resumption.stop();
  }

  /**
   * Resolves once the subscription is on disk. The broker then notifies every matching event from its start on.
   * @throws BrokerError 100101, 100102, 100103, 100106, 100108, 100109, 100306, 100501, 100503, 100505, 100506, 100702, 200001, 200205, 200207, 200208,
   * 200211, 200300, 200301; 100300 to 100304 for an offset.
   */
  async subscribe(caller: Caller, call: SubscribeCall): Promise<SubscriptionId> {
    const { groups, sink, ownership } = this.#options;
    const filter = parseCallbackFilter(call.topic);
    const group = groups.get(call.groupId);
    const id = this.#toId(caller, call.subscriptionId);
    if (!isPattern(filter)) await group.getTopic(parseTopicName(filter));
    await sink.checkTarget(await this.#targetFor(id, call, caller));
    await this.#withLock(id, async () => {
      const owner = await ownership.owner();
      if (call.subscriptionId !== undefined) await ownership.claim(id);
      return group.changes.shared(() => this.#makeOrContinue(id, { group, filter, call, caller, owner }));
    });
    return id;
  }

  /** @throws BrokerError 100503, 100504, 100505, 100601, 100702, 200207, 200300. */
  async unSubscribe(caller: Caller, call: UnsubscribeCall): Promise<void> {
    const { hasCoordinator, ownership, store } = this.#options;
    if (caller.protocol === "JSON-RPC" && !hasCoordinator) throw new BrokerError("noCoordinator");
    const id = this.#options.access.parseSubscriptionId(caller, call.subscriptionId);
    await this.#withLock(id, async () => {
      this.#checkRemovable(caller, await store.findSubscription(id)); // before the claim: a foreign caller must not move the subscription to this node
      await ownership.claim(id);
      return this.#remove(id, caller);
    });
  }

  /**
   * Suspends a subscription whose `worker` has given up, or whose owner has no rights any more. Its cursor stays until somebody subscribes again or an
   * operator resumes it. Does nothing if another worker delivers it now. If the write to the store fails, a new worker tries again later. Never rejects.
   */
  async suspend(id: SubscriptionId, worker: DeliveryWorker): Promise<void> {
    const { workers, locks, logger, limits } = this.#options;
    try {
      await locks.run(id, async () => {
        if (workers.find(id) === worker) await this.#suspend(id);
      });
    } catch (error) {
      logger.error("subscription not suspended", { subscriptionId: id, error });
      void this.#resumption.beginLater(limits.retryDelayMsMax);
    }
  }

  /** Ends the worker first, because a worker that waits for a retry would make it if the owner's rights returned before the suspension. */
  async #suspend(id: SubscriptionId): Promise<void> {
    const { workers, progressWriter, store, logger } = this.#options;
    const progress = await workers.remove(id, 0);
    if (progress === undefined) return;
    // Another node that continues the subscription reads its row, without asking this node.
    await progressWriter.flush();
    const isSuspended = await store.setSubscriptionState(progress, "suspended");
    if (isSuspended) logger.warn("subscription suspended", await this.#describe(id));
    this.#options.onHeld();
  }

  /** Fields of a subscription for the log. They show only the receiver of the url: the rest may contain a token. */
  async #describe(id: SubscriptionId): Promise<LogFields> {
    const row = await this.#options.store.findSubscription(id).catch(() => undefined);
    const hasRights = row === undefined || this.#options.access.mayDeliver(row);
    return {
      subscriptionId: id,
      groupId: row?.groupId,
      topic: row?.filter,
      owner: row?.principal,
      receiver: row && findReceiver(urlOf(row)),
      ...(hasRights ? toFixReceiver(id, this.#options.history.of(id)[0]?.reason) : toGiveRights(row)),
    };
  }

  #toId(caller: Caller, text: string | undefined): SubscriptionId {
    const { access, randomness } = this.#options;
    return text === undefined
      ? access.createSubscriptionId(caller, randomness.uuid())
      : access.parseSubscriptionId(caller, text);
  }

  /** Holds the identifier's lock, and repeats `task` while it returns false because the state that it read has changed. */
  async #withLock(id: SubscriptionId, task: () => Promise<boolean>): Promise<void> {
    await this.#options.locks.run(id, async () => {
      for (let tries = 0; tries < triesMax; tries += 1) if (await task()) return;
      throw new BrokerError("busy", { details: "the subscription or its index changed during every try" });
    });
  }

  /** Runs `task` while the group's index cannot roll back. */
  #unchanged<T>(groupId: GroupId, task: () => Promise<T>): Promise<T> {
    const group = this.#options.groups.find(groupId);
    return group === undefined ? task() : group.changes.shared(task);
  }

  async #makeOrContinue(id: SubscriptionId, checked: CheckedCall): Promise<boolean> {
    const { caller, call } = checked;
    const { url, subscriptionId } = call;
    this.#options.access.authorizeCallback(caller, call); // Again: the receiver may have taken long to consent.
    const existing = subscriptionId === undefined ? undefined : await this.#findExisting(id);
    if (existing === undefined) return this.#quota.make(url, () => this.#make(id, checked));
    return this.#quota.move(urlOf(existing), url, () => this.#continue(existing, checked));
  }

  async #findExisting(id: SubscriptionId): Promise<Subscription | undefined> {
    // A worker that has just ended may have acknowledged more than its row says.
    await this.#options.progressWriter.flush();
    return this.#options.store.findSubscription(id);
  }

  /** The target of a new or continued subscription, whose receiver is asked for consent. @throws BrokerError 100702, 200001. */
  async #targetFor(id: SubscriptionId, call: SubscribeCall, caller: Caller): Promise<CallbackTarget> {
    const { subscriptionId, format, url, secret } = call;
    const existing = subscriptionId === undefined ? undefined : await this.#options.store.findSubscription(id);
    if (existing !== undefined) this.#options.access.checkOwner(caller, existing.principal);
    const known = existing?.delivery.kind === "webhook" ? existing.delivery : undefined;
    const options = changeOptions(known?.options, call.options ?? {});
    const kept = known?.url === url ? known.secret : undefined;
    const current = kept && readSecrets(kept).current;
    // A subscription that was made before secrets had a fixed form keeps its secret.
    if (secret !== undefined && secret !== current) checkSecret(secret);
    return { id, format, url, secret: secret ?? kept, ...(options && { options }) };
  }

  async #make(id: SubscriptionId, checked: CheckedCall): Promise<boolean> {
    const { store, clock, ownership, access, history } = this.#options;
    const { group, filter, call, owner } = checked;
    if (call.subscriptionId !== undefined) await checkFree(store, id);
    const now = clock.now();
    const { position, generation } = await findStartPosition(
      { ...this.#options, mayFind: this.#options.access.finderFor(checked.caller) },
      group,
      call.offset,
    );
    const { format, url, secret } = call;
    const options = changeOptions(undefined, call.options ?? {});
    const subscription: CallbackSubscription = {
      id,
      filter,
      groupId: group.id,
      delivery: { kind: "webhook", format, url, secret, ...(options && { options }) },
      state: "active",
      cursor: position,
      notifiedCount: 0,
      notifiedAt: now,
      ...nothingFailed,
      createdAt: now,
      ...principalOf(checked.caller),
      owner,
      epoch: this.#firstEpoch(),
    };
    const quotas = access.storedQuotas(subscription.principal, ["subscriptions", "callbackHosts"]);
    const outcome = await store.insertSubscription(subscription, generation, quotas);
    if (typeof outcome === "object") throw overStoredQuota(outcome.quota);
    if (outcome !== "inserted") return false;
    if (call.subscriptionId !== undefined) await checkStillFree(store, subscription);
    history.forget(id); // An attempt of a removed subscription, such as that of a redelivery, may have ended after the removal.
    ownership.begin(subscription);
    return true;
  }

  /** The epoch of a new row: random if nodes share the store, so that a stale node cannot match a recreated row. */
  #firstEpoch(): number {
    const { ownership, randomness } = this.#options;
    return ownership.isShared ? Number.parseInt(randomness.uuid().slice(-randomDigits), 16) : 0;
  }

  async #continue(stored: Subscription, checked: CheckedCall): Promise<boolean> {
    const { workers, store, ownership, progressWriter, access } = this.#options;
    access.checkOwner(checked.caller, stored.principal);
    const existing = toSame(stored, checked);
    if (!ownership.isOwn(existing)) return false;
    const change = toChange(existing, checked);
    const worker = workers.find(existing.id);
    // A new subscribe call gives a failing receiver its full time again.
    if (
      isUnchanged(existing, change) &&
      worker?.progress.epoch === existing.epoch &&
      worker.progress.failedAttempts === 0
    )
      return true;
    const progress = await workers.remove(existing.id, 0);
    const isOwn = progress?.epoch === existing.epoch;
    const current = isOwn ? { ...existing, ...progress } : existing;
    const ahead = isOwn ? worker?.acceptedAhead : undefined;
    try {
      // The worker's last progress must be written before the change.
      if (progress !== undefined) await progressWriter.flush();
      const quotas = access.storedQuotas(existing.principal, ["callbackHosts"]);
      const outcome = await store.updateSubscription(existing, change, quotas);
      if (typeof outcome === "object") throw overStoredQuota(outcome.quota);
      if (!outcome) return false;
    } catch (error) {
      if (existing.state === "active") ownership.begin(current, ahead);
      throw error;
    }
    const next = { ...current, ...change, ...nothingFailed, epoch: existing.epoch + 1 };
    if (change.state === "active") ownership.begin(next, ahead);
    return true;
  }

  /** Checks that the caller may remove a subscription. Treats a subscription of another owner as missing. @throws BrokerError 100504, 100702. */
  #checkRemovable(caller: Caller, known: Subscription | undefined): void {
    if (known === undefined) return;
    const { id, principal: owner, groupId, state } = known;
    const filter = state === "damaged" ? undefined : known.filter;
    if (!this.#options.access.mayRemove(caller, { owner, groupId, filter })) throw notExist(id);
  }

  async #remove(id: SubscriptionId, caller: Caller): Promise<boolean> {
    const { store, ownership, removeSessionFilter } = this.#options;
    const known = await store.findSubscription(id);
    this.#checkRemovable(caller, known);
    if (known === undefined) {
      if (await removeSessionFilter(id, caller)) return true;
      throw notExist(id);
    }
    if (!ownership.isOwn(known)) return false;
    return this.#unchanged(known.groupId, () => this.#delete(known));
  }

  async #delete(known: Subscription): Promise<boolean> {
    const { store, workers, progressWriter, history } = this.#options;
    if (!(await store.deleteSubscription(known))) return false;
    this.#quota.removed(urlOf(known));
    await workers.remove(known.id, 0);
    progressWriter.forget(known);
    history.forget(known.id);
    return true;
  }
}

function notExist(id: SubscriptionId): BrokerError {
  return new BrokerError("subscriptionNotExist", { details: quote(id) });
}

/** @throws BrokerError 100108, 200208. */
function toSame(existing: Subscription, { group, filter }: CheckedCall): CallbackSubscription {
  if (existing.state === "damaged") throw damagedSubscription(existing.id);
  if (!isCallback(existing)) {
    const details = `a session of ${interfaceTypeOf(existing.delivery)} has it`;
    throw new BrokerError("subscriptionElsewhere", { details });
  }
  if (existing.filter === filter && existing.groupId === group.id) return existing;
  throw new BrokerError("subscriptionElsewhere", { details: `${quote(existing.filter)} of group ${existing.groupId}` });
}

function urlOf({ delivery }: Subscription): string {
  return delivery.kind === "webhook" ? delivery.url : "";
}

type Advice = Record<"reason" | "remedy", string | undefined>;

function toFixReceiver(id: SubscriptionId, reason: string | undefined): Advice {
  return { reason, remedy: `fix the receiver, ${thenResume(id)}` };
}

function toGiveRights({ id, principal }: Subscription): Advice {
  if (principal === undefined) {
    const remedy = "subscribe again with the identifier and the key of an admin, who then owns it";
    return { reason: "it was made without a key, so it belongs to nobody", remedy };
  }
  const remedy = `give ${principal} a key, or set the missing role of its keys, ${thenResume(id)}`;
  return { reason: "no key of its owner is valid", remedy };
}

function thenResume(id: SubscriptionId): string {
  return `then POST /admin/v1/subscriptions/${id}/resume, or subscribe again with the identifier`;
}
