import { BrokerError, parseEventId, quote } from "@stele/wire";
import type { Event } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Store } from "../../ports/store.ts";
import { eventsOf } from "../batch-events.ts";
import type { EventResult } from "../broker.ts";
import type { EventIds } from "../event-ids.ts";
import type { Group } from "../group.ts";

export interface EventQueryOptions {
  readonly store: Store;
  readonly eventIds: EventIds;
}

type MayFind = (topic: TopicName) => boolean;

/** Finds events by their identifiers. */
export class EventQuery {
  readonly #options: EventQueryOptions;

  constructor(options: EventQueryOptions) {
    this.#options = options;
  }

  /** An event of a topic that `mayFind` refuses does not exist. @throws BrokerError 100300, 100301, 100302, 100303, 100304. */
  async get(group: Group, eventId: string, mayFind: MayFind = () => true): Promise<EventResult> {
    const { topicDigest, sequence, blockNumber } = parseEventId(eventId);
    for (const topic of await this.#options.store.findTopicsByDigest(group.id, topicDigest)) {
      if (!mayFind(topic.name)) continue;
      const event = await this.#find(group, { topic: topic.name, sequence });
      if (event?.blockNumber === blockNumber) return { ...event, eventId: this.#options.eventIds.of(event) };
    }
    const vanished = await this.#options.store.findVanished(group.id, { digest: topicDigest, sequence, blockNumber });
    if (vanished !== undefined && mayFind(vanished.topic)) {
      const details = `${quote(eventId)} was taken back by a reorganisation of the chain`;
      throw new BrokerError("eventNotExist", { details });
    }
    // The index in the store, which another node may be ahead with.
    const head = (await this.#options.store.findHead(group.id))?.blockNumber ?? -1;
    if (blockNumber > head)
      throw new BrokerError("eventBeyondHead", { details: `block ${blockNumber}, the chain is at ${head}` });
    throw new BrokerError("eventNotExist", { details: quote(eventId) });
  }

  async #find(group: Group, place: Pick<Event, "topic" | "sequence">): Promise<Event | undefined> {
    const batch = await this.#options.store.findBatch(group.id, place);
    return batch === undefined ? undefined : eventsOf(batch)[place.sequence - batch.firstSequence];
  }
}
