import type { Event, EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { TopicTrie } from "../../domain/topic-trie.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Reader } from "./reader.ts";

/** The readers of one filter. */
type Audience = Set<Reader>;

interface GroupReaders {
  readonly all: Set<Reader>;
  readonly byFilter: TopicTrie<Audience>;
  readonly audiences: Map<TopicFilter, Audience>;
}

/** Offers each indexed batch to the readers whose filters match, and wakes them in slices of the event loop. */
export class FeedHub {
  readonly #slices: TimeSlices;
  readonly #groups = new Map<GroupId, GroupReaders>();
  /** Readers to wake. */
  readonly #ready = new Set<Reader>();
  #isWaking = false;

  constructor({ slices }: { readonly slices: TimeSlices }) {
    this.#slices = slices;
  }

  /** Adds a reader, which is offered nothing before {@link addFilter}. */
  attach(groupId: GroupId, reader: Reader): void {
    this.#readersOf(groupId).all.add(reader);
  }

  /** Removes a reader. Its filters must have been removed. */
  detach(groupId: GroupId, reader: Reader): void {
    this.#readersOf(groupId).all.delete(reader);
    this.#ready.delete(reader);
  }

  addFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    const { audiences, byFilter } = this.#readersOf(groupId);
    const known = audiences.get(filter);
    if (known !== undefined) {
      known.add(reader);
      return;
    }
    const audience = new Set([reader]);
    audiences.set(filter, audience);
    byFilter.add(filter, audience);
  }

  removeFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    const { audiences, byFilter } = this.#readersOf(groupId);
    const audience = audiences.get(filter);
    audience?.delete(reader);
    if (audience?.size !== 0) return;
    audiences.delete(filter);
    byFilter.remove(filter, audience);
  }

  hasReaders(groupId: GroupId): boolean {
    return this.#readersOf(groupId).all.size > 0;
  }

  /** Offers batches that were just indexed. Call it before the progress moves, in the same turn. */
  offer(groupId: GroupId, batches: readonly EventBatch[]): void {
    const { byFilter } = this.#readersOf(groupId);
    if (byFilter.isEmpty) return;
    for (const batch of batches) {
      byFilter.match(batch.topic, (audience) => {
        for (const reader of audience) {
          reader.offer(batch);
          this.#ready.add(reader);
        }
      });
    }
    this.#wakeSoon();
  }

  /** Passes an event that is committed nowhere to the readers that have a filter for it. */
  pass(groupId: GroupId, event: Event): void {
    const readers = new Set<Reader>();
    this.#readersOf(groupId).byFilter.match(event.topic, (audience) => {
      for (const reader of audience) readers.add(reader);
    });
    for (const reader of readers) reader.pass(event);
  }

  /** Every reader of a group reads the next indexed batches from the store. Call it in the turn in which the progress moves. */
  fallBehind(groupId: GroupId): void {
    for (const reader of this.#readersOf(groupId).all) {
      reader.fallBehind();
      this.#ready.add(reader);
    }
    this.#wakeSoon();
  }

  #wakeSoon(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    void this.#wakeAll();
  }

  /** Never rejects. A batch may be for thousands of readers: acknowledgements of publishers go out between two slices. */
  async #wakeAll(): Promise<void> {
    for (const reader of this.#ready) {
      this.#ready.delete(reader);
      reader.wake();
      await this.#slices.pause();
    }
    this.#isWaking = false;
  }

  #readersOf(groupId: GroupId): GroupReaders {
    const known = this.#groups.get(groupId);
    if (known !== undefined) return known;
    const readers = { all: new Set<Reader>(), byFilter: new TopicTrie<Audience>(), audiences: new Map() };
    this.#groups.set(groupId, readers);
    return readers;
  }
}
