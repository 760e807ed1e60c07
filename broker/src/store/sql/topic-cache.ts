import type { GroupId } from "../../domain/group-id.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { KeyedTopic } from "./rows.ts";

/**
 * The topics that were last written, at most `topicsMax`. Only a committed change of the index puts one here, never a read, so that
 * nothing stale can be put back. This is right as long as this process alone writes the index; of a database that others write too
 * nothing is kept (`topicsMax` 0).
 */
export class TopicCache {
  readonly #records = new Map<string, KeyedTopic>();
  readonly #topicsMax: number;

  constructor(topicsMax: number) {
    this.#topicsMax = topicsMax;
  }

  find(groupId: GroupId, name: TopicName): KeyedTopic | undefined {
    return this.#records.get(keyOf(groupId, name));
  }

  /** The oldest written falls out first. */
  set(groupId: GroupId, record: KeyedTopic): void {
    const key = keyOf(groupId, record.topic.name);
    this.#records.delete(key);
    this.#records.set(key, record);
    if (this.#records.size <= this.#topicsMax) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  clear(): void {
    this.#records.clear();
  }
}

/** A group has no line feed in its name, so that no two pairs share a key. */
function keyOf(groupId: GroupId, name: TopicName): string {
  return `${groupId}\n${name}`;
}
