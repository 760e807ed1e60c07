import { type EventId, formatEventId, topicDigest } from "@stele/wire";
import type { Event } from "../domain/event.ts";
import type { TopicName } from "../domain/topic-name.ts";

/** Maximum number of cached topic digests, about 120 bytes each. Without the cache, computing a digest takes as long as all other work for an answer. */
const digestsKeptMax = 50_000;

/** Formats eventIds, with a cache of topic digests. */
export class EventIds {
  readonly #digests = new Map<TopicName, string>();

  of(event: Pick<Event, "topic" | "sequence" | "blockNumber">): EventId {
    const { topic, sequence, blockNumber } = event;
    return formatEventId({ topicDigest: this.#digestOf(topic), sequence, blockNumber });
  }

  #digestOf(topic: TopicName): string {
    const known = this.#digests.get(topic);
    if (known !== undefined) return known;
    if (this.#digests.size >= digestsKeptMax) this.#digests.clear();
    const digest = topicDigest(topic);
    this.#digests.set(topic, digest);
    return digest;
  }
}
