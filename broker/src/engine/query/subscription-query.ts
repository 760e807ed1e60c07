import { blockOf, type Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Store } from "../../ports/store.ts";
import type { SubscriptionStatus } from "../broker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";

/** Topics read in one page while a pattern is counted. */
const topicsPerRead = 500;

export interface SubscriptionQueryParts {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly progressWriter: ProgressWriter;
}

/** Tells how far each subscription is. */
export class SubscriptionQuery {
  readonly #parts: SubscriptionQueryParts;

  constructor(parts: SubscriptionQueryParts) {
    this.#parts = parts;
  }

  async list(): Promise<readonly SubscriptionStatus[]> {
    const statuses: SubscriptionStatus[] = [];
    for (const subscription of await this.#parts.store.listSubscriptions()) {
      statuses.push(await this.#toStatus(subscription));
    }
    return statuses;
  }

  async #toStatus(stored: Subscription): Promise<SubscriptionStatus> {
    const worker = this.#parts.dispatcher.findWorker(stored.id);
    const progress = worker?.progress ?? this.#parts.progressWriter.find(stored.id);
    const subscription = { ...stored, ...progress };
    const notifyingCount = worker?.isIdle === true ? 0 : await this.#countPending(subscription);
    return { ...subscription, notifyingCount };
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
