import type { Event } from "../../domain/event.ts";
import { FilterMap } from "../../domain/filter-map.ts";
import { originOf, publishedQos, type QoS, type SessionFilter } from "../../domain/session-filter.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { SessionProtocol, SubscriptionId } from "../../domain/subscription.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Position } from "../../domain/position.ts";
import type { StoredFilter } from "../../ports/session-store.ts";

export interface FilterSetParts {
  /** Marks what the session publishes, where its own filters leave that out. */
  readonly origin: string;
  readonly extensionPrefix: string;
  readonly protocol: SessionProtocol;
}

/** The filters of one session, and what they want of an event. */
export class FilterSet {
  readonly #parts: FilterSetParts;
  readonly #filters = new FilterMap<StoredFilter>();

  constructor(parts: FilterSetParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#filters.size;
  }

  get texts(): readonly TopicFilter[] {
    return [...this.#filters.keys()];
  }

  /** Those of the session alone. */
  get ownTexts(): readonly TopicFilter[] {
    return this.texts.filter((text) => !isShared(text));
  }

  get all(): readonly StoredFilter[] {
    return [...this.#filters.values()];
  }

  find(text: TopicFilter): StoredFilter | undefined {
    return this.#filters.get(text);
  }

  hasId(id: SubscriptionId): boolean {
    for (const filter of this.#filters.values()) if (filter.id === id) return true;
    return false;
  }

  put(filter: StoredFilter): void {
    this.#filters.set(filter.filter, filter);
  }

  /** Answers whether there was such a filter. */
  remove(text: TopicFilter): boolean {
    return this.#filters.delete(text);
  }

  includes(topic: TopicName): boolean {
    return this.allOf(topic).length > 0;
  }

  /** Those that match the topic, whatever else they ask for. */
  allOf(topic: TopicName): readonly StoredFilter[] {
    return this.#filters.matching(topic).filter(({ filter }) => !isShared(filter));
  }

  /** Those that want the event. Matching may take milliseconds: give the filters that match if they are known. */
  wanting(event: Event, matching?: readonly TopicFilter[]): readonly SessionFilter[] {
    const isOwn = this.isOwn(event);
    const filters = matching?.flatMap((text) => this.find(text) ?? []) ?? this.#filters.matching(event.topic);
    return filters.filter(
      ({ filter, startsAfter, isNoLocal }) =>
        event.position > startsAfter && !(isOwn && isNoLocal) && !isShared(filter),
    );
  }

  /** Whether the session published the event. */
  isOwn(event: Event): boolean {
    return originOf(event, this.#parts.extensionPrefix) === this.#parts.origin;
  }

  /** The lower of the QoS of the publish and of the filters. STOMP knows no QoS of a publish: what its subscriber acknowledges depends on that alone. */
  qosOf(event: Event, filters: readonly SessionFilter[]): QoS {
    const { extensionPrefix, protocol } = this.#parts;
    const granted = Math.max(...filters.map(({ qos }) => qos)) as QoS; // one of theirs
    return protocol === "STOMP" ? granted : (Math.min(granted, publishedQos(event, extensionPrefix)) as QoS);
  }

  /** What an event published to the topic has to name as its origin, so that this session does not get it; undefined where it may. */
  originFor(topic: string): string | undefined {
    const name = topic as TopicName; // one that is none matches no filter that matters
    return this.allOf(name).some(({ isNoLocal }) => isNoLocal) ? this.#parts.origin : undefined;
  }

  /** The index went back. */
  rollBack(to: Position): void {
    for (const filter of this.#filters.values()) {
      if (filter.startsAfter > to) this.#filters.set(filter.filter, { ...filter, startsAfter: to });
    }
  }
}
