import type { GroupId } from "../../domain/group-id.ts";
import { nonePending, type PendingEvents } from "../../domain/pending-events.ts";
import type { Position } from "../../domain/position.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { isPattern, type TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { chunksOf } from "../../lib/chunks.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import { PatternCounts } from "./pattern-counts.ts";

/** Maximum number of topics with cursors that one call of the store counts. */
const placesCountedMax = 500;

/** The filter and the cursor of a subscription, whose waiting events are counted. */
export type FilterCursor = Pick<Subscription, "groupId" | "filter" | "cursor">;

export interface PendingCountsOptions {
  readonly store: Store;
  readonly slices: Pauses;
}

/** Filters by cursor. */
type ByCursor = Map<Position, Set<TopicFilter>>;

/** Counts the matching events after cursors. Many subscriptions have the same filter and cursor; each such pair is counted once. */
export class PendingCounts {
  readonly #options: PendingCountsOptions;
  readonly #names = new Map<GroupId, ByCursor>();
  readonly #patterns = new Map<GroupId, ByCursor>();
  readonly #found = new Map<string, PendingEvents>();

  constructor(options: PendingCountsOptions) {
    this.#options = options;
  }

  /** Adds a filter and cursor to count. */
  add({ groupId, filter, cursor }: FilterCursor): void {
    const kind = isPattern(filter) ? this.#patterns : this.#names;
    const ofGroup = getOrAdd(kind, groupId, () => new Map());
    getOrAdd(ofGroup, cursor, () => new Set()).add(filter);
  }

  /** Counts for everything that was added. */
  async read(): Promise<void> {
    for (const [groupId, byCursor] of this.#names) await this.#readNames(groupId, byCursor);
    for (const [groupId, byCursor] of this.#patterns) await this.#readPatterns(groupId, byCursor);
  }

  /** The count for a filter and cursor that {@link read} has counted; 0 for others. */
  get(filterCursor: FilterCursor): number {
    return this.find(filterCursor).count;
  }

  /** Like {@link get}, with the position of the first of these events. */
  find(filterCursor: FilterCursor): PendingEvents {
    return this.#found.get(keyOf(filterCursor)) ?? nonePending;
  }

  async #readNames(groupId: GroupId, byCursor: ByCursor): Promise<void> {
    const { store, slices } = this.#options;
    const filterCursors = [...filterCursorsOf(groupId, byCursor)];
    for (const chunk of chunksOf(filterCursors, placesCountedMax)) {
      const places = chunk.map(({ filter, cursor }) => ({ topic: parseTopicName(filter), after: cursor }));
      const found = await store.countEventsAfterEach(groupId, places);
      for (const [index, filterCursor] of chunk.entries())
        this.#found.set(keyOf(filterCursor), found[index] ?? nonePending);
      await slices.pause();
    }
  }

  async #readPatterns(groupId: GroupId, byCursor: ByCursor): Promise<void> {
    const { slices } = this.#options;
    const patterns = await PatternCounts.begin({ ...this.#options, groupId });
    const newestFirst = [...byCursor].toSorted(([left], [right]) => right - left);
    for (const [cursor, filters] of newestFirst) {
      await patterns.goBackTo(cursor);
      for (const filter of filters) {
        this.#found.set(keyOf({ groupId, filter, cursor }), patterns.find(filter));
        await slices.pause();
      }
    }
  }
}

function keyOf({ groupId, cursor, filter }: FilterCursor): string {
  return `${groupId} ${cursor} ${filter}`;
}

function* filterCursorsOf(groupId: GroupId, byCursor: ByCursor): Iterable<FilterCursor> {
  for (const [cursor, filters] of byCursor) for (const filter of filters) yield { groupId, cursor, filter };
}

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = create();
  map.set(key, value);
  return value;
}
