import { BrokerError, parseEventId, quote } from "@stele/wire";
import type { Event, EventBatch } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Store } from "../../ports/store.ts";
import { type EventPlace, eventsOf, placeIn } from "../batch-events.ts";
import type { EventIds } from "../event-ids.ts";
import type { Group } from "../group.ts";
import type { PlacedEvent } from "../placed-event.ts";

export interface EventQueryOptions {
  readonly store: Store;
  /** The store itself, which does not read dropped events from the chain. */
  readonly storeWithoutDropped: Pick<Store, "findBatch">;
  readonly eventIds: EventIds;
}

type Placed = { readonly batch: EventBatch };
type MayFind = (topic: TopicName) => boolean;

export interface PlaceChoice {
  /** Events of other topics count as missing. The default is every topic. */
  readonly mayFind?: MayFind | undefined;
  /** The topics whose events come first, if several topics have an event with the identifier. By default, all are equal. */
  readonly prefers?: MayFind | undefined;
}

type Find<Found> = (place: Pick<Event, "topic" | "sequence">) => Promise<Found | undefined>;

/** Finds events by their identifiers. */
export class EventQuery {
  readonly #options: EventQueryOptions;

  constructor(options: EventQueryOptions) {
    this.#options = options;
  }

  /**
   * Events of topics for which `mayFind` returns false count as missing. @throws BrokerError 100300 to 100304; 200205, 200208 or 200209 if neither the store
   * nor the chain gives the event; 200205 also for a missing event if {@link Group.findLiveHead} throws it.
   */
  async get(group: Group, eventId: string, mayFind: MayFind = () => true): Promise<PlacedEvent> {
    const find: Find<Event & Placed> = async (place) => {
      const batch = await this.#options.store.findBatch(group.id, place);
      const event = batch && eventsOf(batch)[place.sequence - batch.firstSequence];
      return event && { ...event, batch };
    };
    for await (const event of this.#search(group, eventId, { mayFind, find }))
      return { ...event, eventId: this.#options.eventIds.of(event) };
    throw await this.#explainMissing(group, eventId, mayFind);
  }

  /**
   * The place of an event. If events of two topics have this identifier, and the caller prefers neither topic, the lower of both places: whoever begins there
   * gets an event twice at most, and misses none. Does not read dropped events from the chain. @throws BrokerError 100300 to 100304, 200208.
   */
  async getPlace(
    group: Group,
    eventId: string,
    { mayFind = () => true, prefers = () => true }: PlaceChoice = {},
  ): Promise<EventPlace> {
    const find: Find<EventPlace> = async (place) => {
      const batch = await this.#options.storeWithoutDropped.findBatch(group.id, place);
      return batch && placeIn(batch, place.sequence - batch.firstSequence);
    };
    const found: EventPlace[] = [];
    for await (const place of this.#search(group, eventId, { mayFind, find })) found.push(place);
    const preferred = found.filter(({ topic }) => prefers(topic));
    const [lowest] = (preferred.length > 0 ? preferred : found).toSorted((one, two) => one.position - two.position);
    if (lowest === undefined) throw await this.#explainMissing(group, eventId, mayFind);
    return lowest;
  }

  /** The events with this identifier: more than one if the names of several topics have the same digest. Reads each only when the caller asks for it. */
  async *#search<Found extends EventPlace>(
    group: Group,
    eventId: string,
    { mayFind, find }: { readonly mayFind: MayFind; readonly find: Find<Found> },
  ): AsyncGenerator<Found, void> {
    const { topicDigest, sequence, blockNumber } = parseEventId(eventId);
    for (const topic of await this.#options.store.findTopicsByDigest(group.id, topicDigest)) {
      if (!mayFind(topic.name)) continue;
      const found = await find({ topic: topic.name, sequence });
      if (found?.blockNumber === blockNumber) yield found;
    }
  }

  async #explainMissing(group: Group, eventId: string, mayFind: MayFind): Promise<BrokerError> {
    const { topicDigest: digest, sequence, blockNumber } = parseEventId(eventId);
    // Read the stored head: another node may have indexed more than this node has seen, or have emptied the index.
    const head = (await group.findLiveHead())?.blockNumber ?? -1;
    const vanished = await this.#options.store.findVanished(group.id, { digest, sequence, blockNumber });
    if (vanished !== undefined && mayFind(vanished.topic)) {
      const details = `${quote(eventId)} was taken back by a reorganisation of the chain`;
      return new BrokerError("eventNotExist", { details });
    }
    if (blockNumber > head)
      return new BrokerError("eventBeyondHead", { details: `block ${blockNumber}, the chain is at ${head}` });
    return new BrokerError("eventNotExist", { details: quote(eventId) });
  }
}
