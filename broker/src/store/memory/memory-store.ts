import type { Event, EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { nonePending, type PendingEvents } from "../../domain/pending-events.ts";
import { endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { OverQuota, StoredQuota } from "../../domain/quota.ts";
import { findReceiver } from "../../domain/receiver.ts";
import {
  isCallback,
  nothingFailed,
  type Subscription,
  type SubscriptionId,
  type SubscriptionState,
} from "../../domain/subscription.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { byFilter, type VanishedBatch, VanishedEvents } from "../../domain/vanished-events.ts";
import type { GroupRecords } from "../../ports/group-records.ts";
import type { Journal } from "../../ports/journal.ts";
import type { SecretChange, SecretRows } from "../../ports/secret-rows.ts";
import type { SessionId } from "../../ports/session-store.ts";
import type { GroupLease, SubscriptionKey } from "../../ports/coordinator.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import type {
  CallbackChange,
  ApplyOptions,
  BatchRange,
  EventPlace,
  IndexedBlock,
  HeldCount,
  IndexHead,
  InsertOutcome,
  OwnedCount,
  Progress,
  RetainedEvent,
  RetainedPage,
  RollBack,
  SkippedEntry,
  Store,
  PositionRange,
  RangeCounts,
  TopicSize,
  TopicRange,
  SubscriptionPage,
  TopicPage,
  TopicQuery,
  TopicPosition,
} from "../../ports/store.ts";
import { matchesSearch, type SubscriptionMove, type SubscriptionSearch } from "../../ports/subscription-search.ts";
import { GroupIndex } from "./group-index.ts";
import { MemoryDeadLetters } from "./memory-dead-letters.ts";
import { MemoryGroups } from "./memory-groups.ts";
import { findExceeded } from "./memory-quotas.ts";
import { MemorySessions, type MemorySessionsOptions } from "./memory-sessions.ts";

/** A store in memory. Its content survives `stop` and `start`, but not the process. */
export function createMemoryStore(): Store & Journal & GroupRecords & SecretRows {
  return new MemoryStore();
}

export class MemoryStore extends MemoryGroups implements Store {
  readonly sessions: MemorySessions;
  readonly shares: Store["shares"];
  readonly deadLetters = new MemoryDeadLetters();
  readonly #groups = new Map<GroupId, GroupIndex>();
  readonly #subscriptions: Map<SubscriptionId, Subscription>;
  #sortedIds: readonly SubscriptionId[] | undefined;
  readonly #countsByReceiver = new Map<string | undefined, number>();

  constructor(
    subscriptions = new Map<SubscriptionId, Subscription>(),
    options: Omit<MemorySessionsOptions, "generationOf"> = {},
  ) {
    super();
    this.#subscriptions = subscriptions;
    const generationOf = (id: GroupId): number => this.#groups.get(id)?.generation ?? 0;
    this.sessions = new MemorySessions({ ...options, generationOf });
    this.shares = this.sessions.shares;
  }

  protected override epochOf(id: SessionId): number | undefined {
    return this.sessions.epochOf(id);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async findHead(groupId: GroupId): Promise<IndexHead | undefined> {
    return this.#groups.get(groupId)?.head;
  }

  async applyBlocks(
    groupId: GroupId,
    blocks: readonly IndexedBlock[],
    options: ApplyOptions = { isFinal: false },
  ): Promise<void> {
    if (blocks.length === 0) return;
    const group = this.#groups.get(groupId) ?? new GroupIndex();
    group.apply(blocks, options);
    this.#groups.set(groupId, group);
  }

  async listBlocks(
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]> {
    return this.#groups.get(groupId)?.listBlocks(page.atMost, page.below ?? Number.POSITIVE_INFINITY) ?? [];
  }

  async rollBack(groupId: GroupId, to: BlockRef | undefined): Promise<RollBack> {
    return this.rollBackTo(groupId, to);
  }

  /** Makes all changes in one turn of the event loop. */
  protected rollBackTo(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): RollBack {
    const group = this.#groups.get(groupId) ?? new GroupIndex();
    const { vanished: batches, ...done } = group.rollBack(to);
    this.#groups.set(groupId, group);
    const end = to === undefined ? positionZero : endOfBlock(to.number);
    const vanished = new VanishedEvents();
    vanished.add(batches);
    const all = [...this.#subscriptions.values()];
    for (const subscription of byFilter(all.filter((one) => one.groupId === groupId && one.cursor >= end))) {
      const { filter, cursor, notifiedCount, retryAt } = subscription;
      const taken = vanished.countUpTo(filter, cursor);
      const left = { cursor: end, notifiedCount: Math.max(0, notifiedCount - taken) };
      this.#change(subscription, { ...left, ...nothingFailed, retryAt });
      this.deadLetters.dropAfter(subscription.id, end);
    }
    this.sessions.cutBack(groupId, end, lease?.nodeId);
    return done;
  }

  async findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined> {
    return this.#groups.get(groupId)?.findVanished(place);
  }

  async listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]> {
    return this.#groups.get(groupId)?.listSkippedEntries(atMost) ?? [];
  }

  async findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined> {
    return this.#groups.get(groupId)?.findTopic(name);
  }

  async findTopics(groupId: GroupId, names: readonly TopicName[]): Promise<readonly Topic[]> {
    return this.#groups.get(groupId)?.findTopics(names) ?? [];
  }

  async findTopicsByAddress(groupId: GroupId, addresses: readonly Address[]): Promise<readonly Topic[]> {
    return this.#groups.get(groupId)?.findTopicsByAddress(addresses) ?? [];
  }

  async listTopics(groupId: GroupId, query: TopicQuery): Promise<TopicPage> {
    return this.#groups.get(groupId)?.listTopics(query) ?? { total: 0, topics: [] };
  }

  async countTopics(groupId: GroupId, prefix: string, except: readonly string[]): Promise<number> {
    return this.#groups.get(groupId)?.countTopics(prefix, except) ?? 0;
  }

  async findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]> {
    return this.#groups.get(groupId)?.findTopicsByDigest(digest) ?? [];
  }

  async findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined> {
    return this.#groups.get(groupId)?.findBatch(event);
  }

  async readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    return this.#groups.get(groupId)?.readBatches(range) ?? [];
  }

  async repairBatches(groupId: GroupId, block: IndexedBlock): Promise<readonly EventBatch[]> {
    return this.#groups.get(groupId)?.repair(block) ?? [];
  }

  async dropEvents(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]> {
    return this.#groups.get(groupId)?.drop(batches) ?? [];
  }

  async listRetained(groupId: GroupId, page: RetainedPage): Promise<readonly RetainedEvent[]> {
    return this.#groups.get(groupId)?.listRetained(page) ?? [];
  }

  async countEventsAfter(groupId: GroupId, topic: TopicName, after: Position): Promise<number> {
    return this.#groups.get(groupId)?.findEventsAfter(topic, after).count ?? 0;
  }

  async countEventsAfterEach(groupId: GroupId, places: readonly TopicPosition[]): Promise<readonly PendingEvents[]> {
    const group = this.#groups.get(groupId);
    return places.map(({ topic, after }) => group?.findEventsAfter(topic, after) ?? nonePending);
  }

  async countRange(groupId: GroupId, range: PositionRange): Promise<RangeCounts> {
    return this.#groups.get(groupId)?.countRange(range) ?? { counts: [], upTo: range.upTo };
  }

  async measureTopic(groupId: GroupId, range: TopicRange): Promise<TopicSize> {
    return this.#groups.get(groupId)?.measureTopic(range) ?? { batchCount: 0, byteCount: 0, first: undefined };
  }

  async findSubscription(id: SubscriptionId): Promise<Subscription | undefined> {
    return this.#subscriptions.get(id);
  }

  async findSubscriptions(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> {
    return ids.flatMap((id) => this.#subscriptions.get(id) ?? []);
  }

  async countSubscriptions(): Promise<number> {
    return this.#subscriptions.size;
  }

  async countHeld(): Promise<readonly HeldCount[]> {
    const counts = new Map<string, HeldCount>();
    for (const { groupId, state } of this.#subscriptions.values()) {
      const key = `${state} ${groupId}`;
      if (state !== "active") counts.set(key, { groupId, state, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return [...counts.values()];
  }

  async countOwned(): Promise<readonly OwnedCount[]> {
    const subscriptions = [...this.#subscriptions.values()].map(({ owner }) => owner);
    const sessions = this.sessions.ownersOfConnected();
    return [...new Set([...subscriptions, ...sessions])].map((owner) => {
      return { owner, subscriptions: countOf(subscriptions, owner), sessions: countOf(sessions, owner) };
    });
  }

  async countSubscriptionsTo(receiver: string): Promise<number> {
    return this.#countsByReceiver.get(receiver) ?? 0;
  }

  async listSubscriptions(page: Partial<SubscriptionPage> = {}): Promise<readonly Subscription[]> {
    const { after, limit = Number.POSITIVE_INFINITY } = page;
    const ids = this.#idsInOrder();
    const start = after === undefined ? 0 : ids.findIndex((id) => id > after);
    const found = start < 0 ? [] : ids.slice(start, start + limit);
    return found.flatMap((id) => this.#subscriptions.get(id) ?? []);
  }

  async searchSubscriptions(
    search: SubscriptionSearch,
    { after = "" as SubscriptionId, limit }: SubscriptionPage,
  ): Promise<readonly Subscription[]> {
    const found: Subscription[] = [];
    for (const id of this.#idsInOrder()) {
      const known = id > after ? this.#subscriptions.get(id) : undefined;
      if (known !== undefined && matchesSearch(search, known)) found.push(known);
      if (found.length === limit) break;
    }
    return found;
  }

  /** Sorts again only after a change, since a listing reads many pages. */
  #idsInOrder(): readonly SubscriptionId[] {
    this.#sortedIds ??= [...this.#subscriptions.keys()].toSorted();
    return this.#sortedIds;
  }

  async insertSubscription(
    subscription: Subscription,
    generation: number,
    quotas: readonly StoredQuota[] = [],
  ): Promise<InsertOutcome> {
    if (this.#subscriptions.has(subscription.id)) return "taken";
    const { groupId, cursor } = subscription;
    if (cursor > positionZero && (this.#groups.get(groupId)?.generation ?? 0) !== generation) return "rolled-back";
    const exceeded = findExceeded(quotas, this.#subscriptions.values(), subscription.delivery);
    if (exceeded !== undefined) return exceeded;
    this.#subscriptions.set(subscription.id, subscription);
    this.#sortedIds = undefined;
    this.#count(subscription, 1);
    return "inserted";
  }

  async updateSubscription(
    key: SubscriptionKey,
    change: CallbackChange,
    quotas: readonly StoredQuota[] = [],
  ): Promise<boolean | OverQuota> {
    const known = this.#find(key);
    if (known === undefined) return false;
    const others = [...this.#subscriptions.values()].filter(({ id }) => id !== key.id);
    const exceeded = findExceeded(quotas, others, change.delivery);
    if (exceeded !== undefined) return exceeded;
    this.#count(known, -1);
    this.#count(change, 1);
    const { delivery, state, principal } = change;
    const owned = principal === undefined ? {} : { principal };
    return this.#change(key, { delivery, state, ...nothingFailed, ...owned, epoch: key.epoch + 1 });
  }

  async moveSubscription(
    key: Parameters<Store["moveSubscription"]>[0],
    { delivery, failure = nothingFailed, ...direct }: SubscriptionMove,
    generation: number,
  ): ReturnType<Store["moveSubscription"]> {
    const { cursor = positionZero } = direct;
    if (cursor > positionZero && (this.#groups.get(key.groupId)?.generation ?? 0) !== generation) return "rolled-back";
    const known = this.#find(key);
    if (known === undefined) return "refused";
    if (delivery !== undefined) {
      this.#count(known, -1);
      this.#count({ delivery }, 1);
    }
    const change = { ...direct, ...(delivery !== undefined && { delivery }) };
    this.#change(key, { ...change, ...failure, epoch: key.epoch + 1 });
    if (direct.cursor !== undefined) this.deadLetters.dropAfter(key.id, direct.cursor);
    return "moved";
  }

  async replaceSecrets(changes: readonly SecretChange[]): Promise<number> {
    let count = 0;
    for (const { id, from, to } of changes) {
      const known = this.#subscriptions.get(id);
      if (known === undefined || !isCallback(known) || known.delivery.secret !== from) continue;
      this.#subscriptions.set(id, { ...known, delivery: { ...known.delivery, secret: to } });
      count += 1;
    }
    return count;
  }

  async setSubscriptionState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean> {
    return this.#change(key, { state });
  }

  async deleteSubscription(key: SubscriptionKey): Promise<boolean> {
    const known = this.#find(key);
    if (known === undefined) return false;
    this.#sortedIds = undefined;
    this.#count(known, -1);
    this.deadLetters.dropAll(key.id);
    return this.#subscriptions.delete(key.id);
  }

  async saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]> {
    const refused: SubscriptionId[] = [];
    for (const { skipped = [], ...row } of rows) {
      const known = this.#find(row);
      if (known === undefined) {
        refused.push(row.id);
        continue;
      }
      this.deadLetters.add(row.id, skipped, known.cursor);
      if (isFurther(row, known)) this.#change(row, row);
    }
    return refused;
  }

  #count({ delivery }: Pick<Subscription, "delivery">, change: number): void {
    const receiver = delivery.kind === "webhook" ? findReceiver(delivery.url) : undefined;
    const count = (this.#countsByReceiver.get(receiver) ?? 0) + change;
    if (count === 0) this.#countsByReceiver.delete(receiver);
    else this.#countsByReceiver.set(receiver, count);
  }

  #find({ id, epoch }: SubscriptionKey): Subscription | undefined {
    const known = this.#subscriptions.get(id);
    return known?.epoch === epoch ? known : undefined;
  }

  #change(key: SubscriptionKey, change: Partial<Subscription>): boolean {
    const known = this.#find(key);
    if (known === undefined) return false;
    this.#subscriptions.set(key.id, { ...known, ...change });
    return true;
  }
}

function isFurther(row: Progress, known: Subscription): boolean {
  if (known.cursor !== row.cursor) return known.cursor < row.cursor;
  return known.failedMs < row.failedMs || known.failingSince < row.failingSince || known.retryAt < row.retryAt;
}

function countOf(owners: readonly (NodeId | undefined)[], owner: NodeId | undefined): number {
  return owners.filter((one) => one === owner).length;
}
