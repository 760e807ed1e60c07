import { parseTopicFilter, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { positionZero } from "../../domain/position.ts";
import type { Topic } from "../../domain/topic.ts";
import { BrokerError, encodedBytes, quote } from "@stele/wire";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { eventsOf } from "../batch-events.ts";
import type { EventIds } from "../event-ids.ts";
import type { Groups } from "../group.ts";
import type { PlacedEvent } from "../placed-event.ts";
import type { Paused } from "./paused.ts";
import { findSequence } from "./event-bounds.ts";
import { subscriptionsOf } from "../subscriptions-of.ts";
import { TopicFacts } from "./topic-facts.ts";
import type { EventsCall, Page, PageCall, TopicDetails, TopicsCall } from "./calls.ts";

/** Maximum number of topics that one call reads in search of matches. The next page continues from there. */
const topicsSearchedMax = 10_000;

/** Topics per read. */
const topicsReadMax = 500;

/** Content and extensions of the events of one page, in bytes; a page has at least one event. */
const pageBytesMax = 2 ** 20;

/** Maximum number of sequences without an event in the index that one page of events skips. */
const gapReadsMax = 64;

/** How long one page of events may take, in milliseconds. If the chain gives old events slowly, the page ends early. */
const pageTimeMsMax = 10_000;

export interface TopicFinderOptions {
  readonly store: Store;
  /** May leave out the content of events: a bound of a list needs none. */
  readonly storeWithoutDropped: Pick<Store, "readBatches">;
  readonly clock: Clock;
  readonly groups: Groups;
  readonly eventIds: EventIds;
}

/** Finds topics and their events. */
export class TopicFinder {
  readonly #options: TopicFinderOptions;
  readonly #facts: TopicFacts;

  constructor(options: TopicFinderOptions) {
    this.#options = options;
    this.#facts = new TopicFacts(options);
  }

  /** Lists topics in the order in which they were opened; `next` is the number of topics read so far. @throws BrokerError 100306, 200211, 100109, 200001. */
  async search(call: TopicsCall, { after, limit, slices }: PageCall & Paused): Promise<Page<Topic>> {
    const { store, groups } = this.#options;
    const { id } = groups.getAny(call.groupId);
    const filter = call.filter === undefined ? undefined : parseTopicFilter(call.filter);
    const { prefix = "" } = call;
    const items: Topic[] = [];
    const start = toOffset(after);
    for (let offset = start; offset < start + topicsSearchedMax; offset += topicsReadMax) {
      const { topics } = await store.listTopics(id, { offset, limit: topicsReadMax });
      for (const [index, topic] of topics.entries()) {
        if (!topic.name.startsWith(prefix) || (filter !== undefined && !matchesFilter(filter, topic.name))) continue;
        items.push(topic);
        if (items.length === limit) return { items, next: String(offset + index + 1) };
      }
      if (topics.length < topicsReadMax) return { items, next: undefined };
      await slices.pause();
    }
    return { items, next: String(start + topicsSearchedMax) };
  }

  /** @throws BrokerError 100101. */
  async get(
    name: string,
    { groupId, slices }: Paused & { readonly groupId: string | undefined },
  ): Promise<TopicDetails> {
    const { store, groups } = this.#options;
    const group = groups.getAny(groupId);
    const topic = await group.getTopic(parseTopicName(name));
    const [writers, lastEventAt, rate] = await Promise.all([
      this.#facts.findWriters(group, topic),
      this.#facts.findLastTime(group, topic),
      this.#facts.findRate(group, topic),
    ]);
    const events = await store.countEventsAfter(group.id, topic.name, positionZero);
    const size = await this.#facts.measure(group, { topic, slices });
    const subscriptions = await this.#countSubscriptions(topic, { groupId: group.id, slices });
    return { topic, events, size, rate, lastEventAt, writers, subscriptions };
  }

  /**
   * The newest first. A page ends early if its events are large, if the chain gives old events slowly, or if many sequences have no event in the index.
   * @throws BrokerError 100101; 200205 for a time.
   */
  async listEvents({ topic: name, groupId, from, before, limit }: EventsCall): Promise<Page<PlacedEvent>> {
    const { store, groups, eventIds, clock } = this.#options;
    const startedAt = clock.monotonic();
    const group = groups.getAny(groupId);
    const topic = await group.getTopic(parseTopicName(name));
    const items: PlacedEvent[] = [];
    let bytes = 0;
    const parts = { group, store: this.#options.storeWithoutDropped };
    const first = from === undefined ? 1 : await findSequence(from, topic, parts);
    const end = before === undefined ? topic.sequence + 1 : await findSequence(before, topic, parts);
    let sequence = Math.min(topic.sequence, end - 1);
    for (let gaps = 0; sequence >= first && items.length < limit && gaps < gapReadsMax; ) {
      const batch = await store.findBatch(group.id, { topic: topic.name, sequence });
      if (batch === undefined) {
        gaps += 1;
        sequence -= 1;
        continue;
      }
      const events = eventsOf(batch).slice(0, sequence - batch.firstSequence + 1);
      const room = Math.min(limit - items.length, sequence - first + 1);
      const newest = events.slice(-room).toReversed();
      for (const event of newest) {
        bytes += encodedBytes(event);
        if (items.length > 0 && bytes > pageBytesMax) return { items, next: String(sequence + 1) };
        items.push({ ...event, batch, eventId: eventIds.of(event) });
        sequence -= 1;
      }
      if (clock.monotonic() - startedAt >= pageTimeMsMax) break;
    }
    return { items, next: sequence >= first ? String(sequence + 1) : undefined };
  }

  async #countSubscriptions(
    { name }: Topic,
    { groupId, slices }: Paused & { readonly groupId: string },
  ): Promise<number> {
    let count = 0;
    for await (const row of subscriptionsOf({ ...this.#options, slices })) {
      if (row.groupId === groupId && row.state !== "damaged" && matchesFilter(row.filter, name)) count += 1;
    }
    return count;
  }
}

function toOffset(after: string | undefined): number {
  if (after === undefined) return 0;
  if (/^\d{1,15}$/.test(after)) return Number(after);
  throw new BrokerError("parameterInvalid", { details: `"cursor" is not from this list: ${quote(after)}` });
}
