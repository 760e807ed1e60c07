import type { GroupId } from "../../../domain/group-id.ts";
import type { Address } from "../../../domain/topic.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import type { KeyedTopic } from "../rows.ts";

interface CachedGroup {
  /** Topics in the order of their last writes. */
  readonly byName: Map<TopicName, KeyedTopic>;
  readonly byAddress: Map<Address, KeyedTopic>;
}

/**
 * Recently written topics, at most `topicsMax`. Only a committed change of the index adds a topic, never a read, so that no stale topic
 * gets in. The cache needs this process to be the only writer of the index: with a shared database it is off (`topicsMax` 0).
 */
export class TopicCache {
  readonly #groups = new Map<GroupId, CachedGroup>();
  readonly #topicsMax: number;
  #size = 0;

  constructor(topicsMax: number) {
    this.#topicsMax = topicsMax;
  }

  find(groupId: GroupId, name: TopicName): KeyedTopic | undefined {
    return this.#groups.get(groupId)?.byName.get(name);
  }

  findByAddress(groupId: GroupId, address: Address): KeyedTopic | undefined {
    return this.#groups.get(groupId)?.byAddress.get(address);
  }

  /** Adds or replaces a topic. Above the limit, evicts the topic of this group that was written longest ago, or the new topic if the group has no other. */
  set(groupId: GroupId, record: KeyedTopic): void {
    if (this.#topicsMax === 0) return;
    const group = this.#groupOf(groupId);
    const { name, address } = record.topic;
    if (!group.byName.delete(name)) this.#size += 1;
    group.byName.set(name, record);
    group.byAddress.set(address, record);
    if (this.#size > this.#topicsMax) this.#dropOldest(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }

  #groupOf(groupId: GroupId): CachedGroup {
    const known = this.#groups.get(groupId);
    if (known !== undefined) return known;
    const group = { byName: new Map(), byAddress: new Map() };
    this.#groups.set(groupId, group);
    return group;
  }

  #dropOldest({ byName, byAddress }: CachedGroup): void {
    const [oldest] = byName.values();
    if (oldest === undefined) return;
    byName.delete(oldest.topic.name);
    byAddress.delete(oldest.topic.address);
    this.#size -= 1;
  }
}
