import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { CallbackSubscription, Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { TopicTrie } from "../../domain/topic-trie.ts";
import type { Progress } from "../../ports/store.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";

type Offered = Pick<Reader, "offer">;

interface Standing {
  readonly subscription: Subscription;
  readonly worker: DeliveryWorker;
}

/** Whoever is fed the batches of a group under several filters: a session. */
export interface Reader {
  /** A batch that was just indexed, offered once for each filter that matches. */
  offer(batch: EventBatch): void;
  /** See {@link Feed.fallBehind}. */
  fallBehind(): void;
}

/** Makes the worker of a subscription, not yet started. */
export type WorkerFactory = (subscription: CallbackSubscription) => DeliveryWorker;

/** Keeps a worker for each active callback subscription, and hands workers and readers the batches that match. */
export class Dispatcher {
  readonly #createWorker: WorkerFactory;
  readonly #standing = new Map<SubscriptionId, Standing>();
  /** Workers that are detached and still ending, with their ends. */
  readonly #ending = new Map<Standing, Promise<void>>();
  readonly #tries = new Map<GroupId, TopicTrie<Offered>>();
  readonly #readers = new Map<GroupId, Set<Reader>>();
  #isStopped = false;

  constructor(createWorker: WorkerFactory) {
    this.#createWorker = createWorker;
  }

  /** Starts delivery; nothing once this has stopped. A worker that the subscription already has must be stopped first. */
  add(subscription: CallbackSubscription): void {
    if (this.#isStopped) return;
    const worker = this.#createWorker(subscription);
    this.#standing.set(subscription.id, { subscription, worker });
    this.#trieOf(subscription.groupId).add(subscription.filter, worker.feed);
    worker.start();
  }

  /**
   * Ends delivery; the attempt under way has `graceMs` to end. Answers how far the subscription is; undefined when it had no worker.
   */
  async remove(id: SubscriptionId, graceMs: number): Promise<Progress | undefined> {
    const standing = this.#standing.get(id);
    if (standing === undefined) return undefined;
    this.detach(id);
    const ending = standing.worker.stop(graceMs).finally(() => this.#ending.delete(standing));
    this.#ending.set(standing, ending);
    await ending;
    return standing.worker.progress;
  }

  /** Aborts the attempts of all workers of a group, and returns when every worker has ended, also those that were ending before. */
  async removeAll(groupId: GroupId): Promise<void> {
    for (const [id, { subscription }] of this.#standing) if (subscription.groupId === groupId) void this.remove(id, 0);
    await Promise.all(this.#endingOf(groupId));
  }

  /** Takes a worker that has ended by itself off the feed. */
  detach(id: SubscriptionId): void {
    const standing = this.#standing.get(id);
    if (standing === undefined) return;
    this.#standing.delete(id);
    this.#trieOf(standing.subscription.groupId).remove(standing.subscription.filter, standing.worker.feed);
    standing.worker.feed.leave();
  }

  /** The reader hears of {@link fallBehind} from now on, and of batches only by {@link addFilter}. */
  attach(groupId: GroupId, reader: Reader): void {
    const readers = this.#readers.get(groupId) ?? new Set();
    this.#readers.set(groupId, readers.add(reader));
  }

  /** To be called after all filters of the reader were removed. */
  release(groupId: GroupId, reader: Reader): void {
    this.#readers.get(groupId)?.delete(reader);
  }

  addFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    this.#trieOf(groupId).add(filter, reader);
  }

  removeFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    this.#trieOf(groupId).remove(filter, reader);
  }

  /** The worker of a subscription; undefined when it is suspended or unknown. */
  findWorker(id: SubscriptionId): DeliveryWorker | undefined {
    return this.#standing.get(id)?.worker;
  }

  /** Whether batches of a group are fed to anybody. */
  hasWorkers(groupId: GroupId): boolean {
    return !this.#trieOf(groupId).isEmpty;
  }

  /** Subscriptions of a group that are delivered. */
  countOf(groupId: GroupId): number {
    let count = 0;
    for (const { subscription } of this.#standing.values()) if (subscription.groupId === groupId) count += 1;
    return count;
  }

  /** Every worker of a group that is not ending. */
  *workersOf(groupId: GroupId): Iterable<DeliveryWorker> {
    for (const { subscription, worker } of this.#standing.values()) if (subscription.groupId === groupId) yield worker;
  }

  /** A worker stands under one filter, so it is offered each batch once; a reader once for each of its filters that matches. */
  dispatch(groupId: GroupId, batches: readonly EventBatch[]): void {
    const trie = this.#trieOf(groupId);
    if (trie.isEmpty) return;
    for (const batch of batches) trie.match(batch.topic, (offered) => offered.offer(batch));
  }

  /** Every worker and reader of a group reads from the store what is indexed next. To be called in the turn in which the progress moves. */
  fallBehind(groupId: GroupId): void {
    for (const { feed } of this.workersOf(groupId)) feed.fallBehind();
    for (const reader of this.#readers.get(groupId) ?? []) reader.fallBehind();
  }

  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#standing.keys()].map((id) => this.remove(id, graceMs)));
  }

  *#endingOf(groupId: GroupId): Iterable<Promise<void>> {
    for (const [{ subscription }, ending] of this.#ending) if (subscription.groupId === groupId) yield ending;
  }

  #trieOf(groupId: GroupId): TopicTrie<Offered> {
    const known = this.#tries.get(groupId);
    if (known !== undefined) return known;
    const trie = new TopicTrie<Offered>();
    this.#tries.set(groupId, trie);
    return trie;
  }
}
