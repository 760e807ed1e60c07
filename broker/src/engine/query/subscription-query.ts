import type { NodeId } from "../../domain/node.ts";
import { blockOf, type Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Store } from "../../ports/store.ts";
import type { NodeListing, SubscriptionStatus } from "../broker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";

/** Topics read in one page while a pattern is counted. */
const topicsPerRead = 500;

export interface SubscriptionQueryParts {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly progressWriter: ProgressWriter;
  /** Knows the nodes, where several share the store. */
  readonly coordinator?: Pick<Coordinator, "listNodes"> | undefined;
}

/** Matching events past a cursor, by group, cursor and filter. */
type PendingCounts = Map<string, Promise<number>>;

/** Tells how far each subscription is. */
export class SubscriptionQuery {
  readonly #parts: SubscriptionQueryParts;

  constructor(parts: SubscriptionQueryParts) {
    this.#parts = parts;
  }

  async list(): Promise<readonly NodeListing[]> {
    const { store, coordinator } = this.#parts;
    const nodes = (await coordinator?.listNodes()) ?? [{ id: undefined, address: undefined }];
    const byOwner = new Map<NodeId | undefined, SubscriptionStatus[]>(nodes.map(({ id }) => [id, []]));
    const counts: PendingCounts = new Map();
    for (const row of await store.listSubscriptions()) {
      const statuses = byOwner.get(coordinator && row.owner);
      if (statuses !== undefined) statuses.push(await this.#toStatus(row, counts));
    }
    return nodes.map(({ id, address }) => ({ address, subscriptions: byOwner.get(id) ?? [] }));
  }

  async #toStatus(stored: Subscription, counts: PendingCounts): Promise<SubscriptionStatus> {
    const worker = this.#parts.dispatcher.findWorker(stored.id);
    const progress = worker?.progress ?? this.#parts.progressWriter.find(stored.id);
    const subscription = progress?.epoch === stored.epoch ? { ...stored, ...progress } : stored;
    const isIdle = worker?.isIdle === true && progress?.epoch === stored.epoch;
    const notifyingCount = isIdle ? 0 : await this.#countOnce(subscription, counts);
    return { ...subscription, notifyingCount };
  }

  /** Many subscriptions of one topic stand at the same event. */
  #countOnce(subscription: Subscription, counts: PendingCounts): Promise<number> {
    const { groupId, filter, cursor } = subscription;
    const key = `${groupId} ${cursor} ${filter}`;
    const known = counts.get(key) ?? this.#countPending(subscription);
    counts.set(key, known);
    return known;
  }

  async #countPending(subscription: Subscription): Promise<number> {
    const { groupId, filter, cursor } = subscription;
    if (!isPattern(filter)) return this.#parts.store.countEventsAfter(groupId, parseTopicName(filter), cursor);
    let count = 0;
    for await (const topic of this.#matchingTopics(subscription)) {
      count += await this.#parts.store.countEventsAfter(groupId, topic, cursor);
    }
    return count;
  }

  /** Topics that match, but for those whose newest event the cursor has passed. */
  async *#matchingTopics(subscription: Subscription): AsyncIterable<TopicName> {
    const { groupId, filter, cursor } = subscription;
    for (let offset = 0; ; offset += topicsPerRead) {
      const { topics } = await this.#parts.store.listTopics(groupId, { offset, limit: topicsPerRead });
      for (const topic of topics) {
        if (isAfter(topic.blockNumber, cursor) && matchesFilter(filter, topic.name)) yield topic.name;
      }
      if (topics.length < topicsPerRead) return;
    }
  }
}

function isAfter(blockNumber: number, cursor: Position): boolean {
  return blockNumber >= blockOf(cursor);
}
