import { BrokerError, isBrokerError, quote } from "@stele/wire";
import { before, beforeBlock, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, matchesFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Store } from "../../ports/store.ts";
import { placeIn } from "../batch-events.ts";
import type { Group } from "../group.ts";
import { illegalPlace } from "../illegal-place.ts";
import type { EventQuery } from "../query/event-query.ts";
import type { PlaceOrder } from "./calls.ts";

export interface PlacesOptions {
  /** May leave out the content of events: a place needs none. */
  readonly storeWithoutDropped: Pick<Store, "findBatch">;
  readonly events: EventQuery;
}

/** A place between the events of a group. */
export interface FoundPlace {
  /** The place just before the event. */
  readonly before: Position;
  /** The place just after the event. A time has no event, so both places are the same. */
  readonly after: Position;
}

/** Finds the places that operators name. */
export class Places {
  readonly #options: PlacesOptions;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** @throws BrokerError as getEvent for an eventId; 200001 and 100303 for a sequence; 200205 for a time. */
  async find(place: PlaceOrder, { filter }: Pick<Subscription, "filter">, group: Group): Promise<FoundPlace> {
    if (place === "OFFSET_FIRST") return { before: positionZero, after: positionZero };
    const head = Math.max(0, (await group.findHead())?.blockNumber ?? 0);
    if (place === "OFFSET_LAST") return { before: endOfBlock(head), after: endOfBlock(head) };
    if (typeof place === "string") return this.#ofEvent(place, filter, group);
    if ("sequence" in place) return this.#ofSequence(place.sequence, filter, group);
    const block = await group.times.findBlockAt(place.time, head);
    const start = beforeBlock(block);
    return { before: start, after: start };
  }

  /** If two topics have events with this identifier, the operator means the one that the subscription gets. */
  async #ofEvent(eventId: string, filter: Subscription["filter"], group: Group): Promise<FoundPlace> {
    const prefers = (topic: TopicName): boolean => matchesFilter(filter, topic);
    try {
      return around((await this.#options.events.getPlace(group, eventId, { prefers })).position);
    } catch (error) {
      const others = ", a time such as 2026-11-23T09:00:00Z, a sequence of the topic";
      throw isBrokerError(error, "eventIdIllegal") ? illegalPlace(eventId, others) : error;
    }
  }

  async #ofSequence(sequence: number, filter: Subscription["filter"], group: Group): Promise<FoundPlace> {
    if (isPattern(filter)) {
      const details =
        "a sequence is a place in one topic, and the subscription has a pattern: name an eventId or a time";
      throw new BrokerError("parameterInvalid", { details });
    }
    const place = { topic: parseTopicName(filter), sequence };
    const batch = await this.#options.storeWithoutDropped.findBatch(group.id, place);
    const event = batch && placeIn(batch, sequence - batch.firstSequence);
    if (event !== undefined) return around(event.position);
    throw new BrokerError("eventNotExist", { details: `${quote(filter)} has no event with the sequence ${sequence}` });
  }
}

function around(position: Position): FoundPlace {
  return { before: before(position), after: position };
}
