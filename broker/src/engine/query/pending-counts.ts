import type { GroupId } from "../../domain/group-id.ts";
import { blockOf, type Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Store } from "../../ports/store.ts";

/** Places in topics that are counted by one call of the store. */
const placesAtOnceMax = 10_000;

/** Topics read in one page while a pattern is counted. */
const topicsPerRead = 500;

/** Where a subscription stands. */
export type Standing = Pick<Subscription, "groupId" | "filter" | "cursor">;

/** Matching events past a cursor. Many subscriptions of one topic stand at the same event, and many more are counted by one call. */
export class PendingCounts {
  readonly #store: Store;
  readonly #counts = new Map<string, number>();

  constructor(store: Store) {
    this.#store = store;
  }

  async read(standings: readonly Standing[]): Promise<void> {
    const distinct = [...new Map(standings.map((standing) => [keyOf(standing), standing])).values()];
    const [patterns, names] = [distinct.filter(isOfPattern), distinct.filter((one) => !isOfPattern(one))];
    for (const [groupId, ofGroup] of byGroup(names)) {
      for (let start = 0; start < ofGroup.length; start += placesAtOnceMax) {
        await this.#readNames(groupId, ofGroup.slice(start, start + placesAtOnceMax));
      }
    }
    for (const standing of patterns) this.#counts.set(keyOf(standing), await this.#countPattern(standing));
  }

  /** Of a standing that was read. */
  get(standing: Standing): number {
    return this.#counts.get(keyOf(standing)) ?? 0;
  }

  async #readNames(groupId: GroupId, standings: readonly Standing[]): Promise<void> {
    const places = standings.map(({ filter, cursor }) => ({ topic: parseTopicName(filter), after: cursor }));
    const counts = await this.#store.countEventsAfterEach(groupId, places);
    for (const [index, standing] of standings.entries()) this.#counts.set(keyOf(standing), counts[index] ?? 0);
  }

  async #countPattern(standing: Standing): Promise<number> {
    const { groupId, cursor } = standing;
    let count = 0;
    for await (const topic of this.#matchingTopics(standing)) {
      count += await this.#store.countEventsAfter(groupId, topic, cursor);
    }
    return count;
  }

  /** Topics that match, but for those whose newest event the cursor has passed. */
  async *#matchingTopics({ groupId, filter, cursor }: Standing): AsyncIterable<TopicName> {
    for (let offset = 0; ; offset += topicsPerRead) {
      const { topics } = await this.#store.listTopics(groupId, { offset, limit: topicsPerRead });
      for (const topic of topics) {
        if (isAfter(topic.blockNumber, cursor) && matchesFilter(filter, topic.name)) yield topic.name;
      }
      if (topics.length < topicsPerRead) return;
    }
  }
}

function keyOf({ groupId, cursor, filter }: Standing): string {
  return `${groupId} ${cursor} ${filter}`;
}

function isOfPattern({ filter }: Standing): boolean {
  return isPattern(filter);
}

function byGroup(standings: readonly Standing[]): ReadonlyMap<GroupId, readonly Standing[]> {
  const groups = new Map<GroupId, Standing[]>();
  for (const standing of standings) {
    const known = groups.get(standing.groupId);
    if (known === undefined) groups.set(standing.groupId, [standing]);
    else known.push(standing);
  }
  return groups;
}

function isAfter(blockNumber: number, cursor: Position): boolean {
  return blockNumber >= blockOf(cursor);
}
