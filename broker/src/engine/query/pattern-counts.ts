import type { GroupId } from "../../domain/group-id.ts";
import { nonePending, type PendingEvents } from "../../domain/pending-events.ts";
import { blockOf, endOfBlock, type Position } from "../../domain/position.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { TopicTally } from "../../domain/topic-tally.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";

/** Maximum number of batches that one call of the store counts. */
const batchesCountedMax = 1_000;

/** Maximum number of topics that one step counts when a range has more batches than there are topics. */
const topicsCountedMax = 500;

export interface PatternCountsOptions {
  readonly store: Store;
  readonly slices: Pauses;
  readonly groupId: GroupId;
}

/**
 * Counts the events of one group that match a pattern and come after a cursor. It reads the index once, from the head back to the oldest cursor, and
 * tallies the events by topic. So each cursor costs a read of the events up to the next cursor, or one look-up for each topic if that is cheaper,
 * however many patterns have this cursor.
 */
export class PatternCounts {
  readonly #options: PatternCountsOptions;
  #tally = new TopicTally();
  /** The tally has the events after this position. */
  #from: Position;

  private constructor(options: PatternCountsOptions, head: Position) {
    this.#options = options;
    this.#from = head;
  }

  /** Begins at the head of the index. */
  static async begin(options: PatternCountsOptions): Promise<PatternCounts> {
    const head = await options.store.findHead(options.groupId);
    return new PatternCounts(options, endOfBlock(Math.max(0, head?.blockNumber ?? 0)));
  }

  /** Moves back to a cursor; a cursor after the current position changes nothing. */
  async goBackTo(cursor: Position): Promise<void> {
    if (cursor >= this.#from) return;
    if (!(await this.#addRange(cursor))) await this.#countAnew(cursor);
    this.#from = cursor;
  }

  /** Matching events after the current position. */
  find(filter: TopicFilter): PendingEvents {
    return this.#tally.sum(filter);
  }

  /**
   * Adds the events between a cursor and the current position. Stops once it has counted more batches than the group has topics. If events remain then, returns
   * false, and the tally is invalid.
   */
  async #addRange(cursor: Position): Promise<boolean> {
    const { store, slices, groupId } = this.#options;
    const { total } = await store.listTopics(groupId, { offset: 0, limit: 1 });
    for (let after = cursor, batches = 0; after < this.#from; batches += batchesCountedMax) {
      if (batches > total) return false;
      const counted = await store.countRange(groupId, {
        after,
        upTo: this.#from,
        batchesMax: batchesCountedMax,
      });
      for (const { topic, ...events } of counted.counts) this.#tally.add(topic, events);
      after = counted.upTo;
      await slices.pause();
    }
    return true;
  }

  /** Makes a new tally by counting each topic, except those whose newest event the cursor has passed. */
  async #countAnew(cursor: Position): Promise<void> {
    const { store, slices, groupId } = this.#options;
    this.#tally = new TopicTally();
    for (let offset = 0, isLast = false; !isLast; offset += topicsCountedMax) {
      const { topics } = await store.listTopics(groupId, { offset, limit: topicsCountedMax });
      isLast = topics.length < topicsCountedMax;
      const due = topics.filter(({ blockNumber }) => blockNumber >= blockOf(cursor));
      const places = due.map(({ name }) => ({ topic: name, after: cursor }));
      const counts = await store.countEventsAfterEach(groupId, places);
      for (const [index, { name }] of due.entries()) this.#tally.add(name, counts[index] ?? nonePending);
      await slices.pause();
    }
  }
}
