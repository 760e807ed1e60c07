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
  /** Marks the session's own publishes, which filters with `isNoLocal` leave out. */
  readonly origin: string;
  readonly extensionPrefix: string;
  readonly protocol: SessionProtocol;
  readonly owners: FilterOwners;
}

/**
 * The session of each filter of this node's connected sessions, by the filter's identifier. A call may name an unknown identifier, and must not look at all
 * sessions for it: there may be tens of thousands.
 */
export type FilterOwners = Map<SubscriptionId, string>;

/** The filters of one session. */
export class FilterSet {
  readonly #parts: FilterSetParts;
  readonly #filters = new FilterMap<StoredFilter>();
  #version = 0;
  #isListed = false;
  readonly #notifiedAt = new Map<TopicFilter, number>();
  /** Whether the session's row has these filters. False for a session that lives only in memory, and until a session that joins a share has written them. */
  areStored = false;

  constructor(parts: FilterSetParts) {
    this.#parts = parts;
  }

  /** Changes with each filter that is put or removed. */
  get version(): number {
    return this.#version;
  }

  get size(): number {
    return this.#filters.size;
  }

  get texts(): readonly TopicFilter[] {
    return [...this.#filters.keys()];
  }

  /** Texts of the filters that are not shared. */
  get ownTexts(): readonly TopicFilter[] {
    return this.texts.filter((text) => !isShared(text));
  }

  get all(): readonly StoredFilter[] {
    return [...this.#filters.values()];
  }

  find(text: TopicFilter): StoredFilter | undefined {
    return this.#filters.get(text);
  }

  /** Adds the filters to `owners`, and keeps this list up to date until {@link unlist}. */
  list(): void {
    this.#isListed = true;
    for (const filter of this.#filters.values()) this.#listOne(filter);
  }

  unlist(): void {
    for (const { filter } of this.#filters.values()) this.#unlistOne(filter);
    this.#isListed = false;
  }

  put(filter: StoredFilter): void {
    this.#version += 1;
    this.#unlistOne(filter.filter);
    this.#filters.set(filter.filter, filter);
    this.#listOne(filter);
  }

  /** Removes a filter. Returns whether the session had it. */
  remove(text: TopicFilter): boolean {
    this.#version += 1;
    this.#notifiedAt.delete(text);
    this.#unlistOne(text);
    return this.#filters.delete(text);
  }

  /** Records that the peer got an event of these filters. */
  noteNotified(filters: readonly SessionFilter[], at: number): void {
    for (const { filter } of filters) this.#notifiedAt.set(filter, at);
  }

  /** When the peer got the latest event of a filter; undefined if it got none since this node has the session. */
  notifiedAt(text: TopicFilter): number | undefined {
    return this.#notifiedAt.get(text);
  }

  includes(topic: TopicName): boolean {
    return this.allOf(topic).length > 0;
  }

  /** The filters that match the topic and are not shared. Ignores their other options. */
  allOf(topic: TopicName): readonly StoredFilter[] {
    return this.#filters.matching(topic).filter(({ filter }) => !isShared(filter));
  }

  /** The filters that want the event. Matching may take milliseconds: pass the matching filters if they are known. */
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

  /** The lower of the QoS of the publish and the highest QoS of the filters. For STOMP, which has no QoS, only the filters count. */
  qosOf(event: Event, filters: readonly SessionFilter[]): QoS {
    const { extensionPrefix, protocol } = this.#parts;
    const granted = Math.max(...filters.map(({ qos }) => qos)) as QoS; // the QoS of one of the filters
    return protocol === "STOMP" ? granted : (Math.min(granted, publishedQos(event, extensionPrefix)) as QoS);
  }

  /** The origin that a publish to the topic must carry, so that this session does not get the event; undefined if it may get it. */
  originFor(topic: string): string | undefined {
    const name = topic as TopicName; // The publish is refused later if the name is invalid.
    return this.allOf(name).some(({ isNoLocal }) => isNoLocal) ? this.#parts.origin : undefined;
  }

  /** Rolls the starts of the filters back with the index. */
  rollBack(to: Position): void {
    for (const filter of this.#filters.values()) {
      if (filter.startsAfter > to) this.#filters.set(filter.filter, { ...filter, startsAfter: to });
    }
  }

  #listOne({ id }: StoredFilter): void {
    if (this.#isListed) this.#parts.owners.set(id, this.#parts.origin);
  }

  #unlistOne(text: TopicFilter): void {
    const filter = this.#isListed ? this.find(text) : undefined;
    if (filter !== undefined) this.#parts.owners.delete(filter.id);
  }
}
