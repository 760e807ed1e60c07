import type { GroupId } from "../../domain/group-id.ts";
import type { CallbackSubscription, SubscriptionId } from "../../domain/subscription.ts";
import { SetMap } from "../../lib/set-map.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Progress } from "../../ports/store.ts";
import type { AcceptedAhead } from "./accepted-ahead.ts";
import type { DeliveryWorker } from "./delivery-worker.ts";

export interface WorkerEntry {
  readonly subscription: CallbackSubscription;
  readonly worker: DeliveryWorker;
}

/** Creates the worker of a subscription, not yet started. `ahead` are events beyond the cursor that an earlier worker has delivered. */
export type WorkerFactory = (subscription: CallbackSubscription, ahead?: AcceptedAhead) => DeliveryWorker;

/** The workers of this node: one for each active callback subscription that it delivers. */
export class DeliveryWorkers {
  readonly #createWorker: WorkerFactory;
  readonly #slices: Pauses;
  readonly #entries = new Map<SubscriptionId, WorkerEntry>();
  /** The workers by the principals of their subscriptions; the empty text for subscriptions without one. */
  readonly #byOwner = new SetMap<string, WorkerEntry>();
  /** Number of workers by group. */
  readonly #counts = new Map<GroupId, number>();
  #newOwners = new Set<string>();
  /** Removed workers that are still ending; each promise settles when its worker has ended. */
  readonly #ending = new Map<WorkerEntry, Promise<void>>();
  #isStopped = false;

  constructor(createWorker: WorkerFactory, slices: Pauses) {
    this.#createWorker = createWorker;
    this.#slices = slices;
  }

  /** Starts delivery; does nothing after {@link stop}. An earlier worker of the subscription must have been removed. */
  add(subscription: CallbackSubscription, ahead?: AcceptedAhead): void {
    if (this.#isStopped) return;
    const worker = this.#createWorker(subscription, ahead);
    const entry = { subscription, worker };
    this.#entries.set(subscription.id, entry);
    this.#count(subscription.groupId, 1);
    const owner = subscription.principal ?? "";
    this.#byOwner.add(owner, entry);
    this.#newOwners.add(owner);
    worker.start();
  }

  /** Ends delivery; the attempt in progress has `graceMs` to end. Returns the progress; undefined if there was no worker. */
  async remove(id: SubscriptionId, graceMs: number): Promise<Progress | undefined> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    this.#detach(entry);
    const ending = entry.worker.stop(graceMs).finally(() => this.#ending.delete(entry));
    this.#ending.set(entry, ending);
    await ending;
    return entry.worker.progress;
  }

  /** Aborts the attempts of all workers of a group, and returns when every worker has ended, including those that were already ending. */
  async removeAll(groupId: GroupId): Promise<void> {
    for (const [id, { subscription }] of this.#entries) {
      if (subscription.groupId === groupId) void this.remove(id, 0);
      const pause = this.#slices.pause();
      if (pause !== undefined) await pause;
    }
    await Promise.all(this.#endingOf(groupId));
  }

  /** The worker of a subscription; undefined if this node does not deliver it. */
  find(id: SubscriptionId): DeliveryWorker | undefined {
    return this.#entries.get(id)?.worker;
  }

  /** Number of subscriptions of a group that this node delivers. */
  countOf(groupId: GroupId): number {
    return this.#counts.get(groupId) ?? 0;
  }

  /** Every worker that is not ending. */
  all(): Iterable<WorkerEntry> {
    return this.#entries.values();
  }

  /** The workers of one owner; pass the empty text for subscriptions without one. */
  ofOwner(owner: string): Iterable<WorkerEntry> {
    return this.#byOwner.get(owner);
  }

  /** The owners of workers that were added since the last call. */
  takeNewOwners(): ReadonlySet<string> {
    const owners = this.#newOwners;
    if (owners.size > 0) this.#newOwners = new Set();
    return owners;
  }

  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#entries.keys()].map((id) => this.remove(id, graceMs)));
  }

  /** Forgets a worker and closes its feed, but does not stop the worker. */
  #detach(entry: WorkerEntry): void {
    const { id, groupId, principal: owner = "" } = entry.subscription;
    this.#entries.delete(id);
    this.#count(groupId, -1);
    this.#byOwner.delete(owner, entry);
    entry.worker.feed.close();
  }

  #count(groupId: GroupId, change: number): void {
    this.#counts.set(groupId, this.countOf(groupId) + change);
  }

  *#endingOf(groupId: GroupId): Iterable<Promise<void>> {
    for (const [{ subscription }, ending] of this.#ending) if (subscription.groupId === groupId) yield ending;
  }
}
