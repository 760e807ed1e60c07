import { BrokerError } from "@stele/wire";
import type { Event, EventBatch } from "../../domain/event.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { FilterMap } from "../../domain/filter-map.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Reader } from "./reader.ts";

/** Pattern levels that one offer compares, which takes about 10 ms. Beyond it, every reader reads the remaining batches from the store, in slices. */
const levelsMax = 100_000;

/** Further pattern levels for each batch of the offer: a block may have batches of thousands of topics. */
const levelsPerBatchMax = 200;

/**
 * How often one offer gives a batch to a reader, which takes about 50 ms and 6 MB. Beyond it, readers read the remaining batches that they want from the store:
 * a block may have batches of thousands of topics, and thousands of readers may want all of them.
 */
const givenMax = 100_000;

/**
 * Pattern levels that are compared for one passed event, which takes about 1 ms. Beyond it, the event is refused. A topic of up to ten levels never reaches
 * this limit, whatever filters exist.
 */
const levelsPerPassMax = 10_000;

/** Estimated memory, in bytes, of an event that waits to be passed, without its content and extensions. */
const waitingOverheadBytes = 512;

/** Maximum memory, in bytes, of the events that wait to be passed. Further ones are refused: an event waits even if its publisher has left. */
const passBytesWaitingMax = 64 * 1024 * 1024;

/** The readers of one filter. */
type Audience = Set<Reader>;

interface GroupReaders {
  readonly all: Set<Reader>;
  readonly byFilter: FilterMap<Audience>;
  /** Resolves when all readers have the events passed so far; undefined if no event is on its way. Never rejects. */
  passing: Promise<void> | undefined;
}

/** Offers each indexed batch to the readers whose filters match, and wakes them in slices of the event loop. */
export class FeedHub {
  readonly #slices: TimeSlices;
  readonly #groups = new Map<GroupId, GroupReaders>();
  #readerCount = 0;
  /** Readers to wake. */
  readonly #ready = new Set<Reader>();
  #isWaking = false;
  #passBytesWaiting = 0;

  constructor({ slices }: { readonly slices: TimeSlices }) {
    this.#slices = slices;
  }

  /** Adds a new reader, which is offered nothing before {@link addFilter}. */
  attach(groupId: GroupId, reader: Reader): void {
    this.#readersOf(groupId).all.add(reader);
    this.#readerCount += 1;
  }

  /** Removes a reader. Its filters must have been removed. */
  detach(groupId: GroupId, reader: Reader): void {
    if (this.#readersOf(groupId).all.delete(reader)) this.#readerCount -= 1;
    this.#ready.delete(reader);
  }

  addFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    const { byFilter } = this.#readersOf(groupId);
    const known = byFilter.get(filter);
    if (known === undefined) byFilter.set(filter, new Set([reader]));
    else known.add(reader);
  }

  removeFilter(groupId: GroupId, filter: TopicFilter, reader: Reader): void {
    const { byFilter } = this.#readersOf(groupId);
    const audience = byFilter.get(filter);
    audience?.delete(reader);
    if (audience?.size === 0) byFilter.delete(filter);
  }

  /** The equal share of each reader of this node in a limit for all of them together. */
  shareOf(max: number): number {
    return max / this.#readerCount;
  }

  hasReaders(groupId: GroupId): boolean {
    return this.#readersOf(groupId).all.size > 0;
  }

  /** Offers batches that were just indexed, or makes readers read them from the store if matching takes too long. Call it right before the progress moves. */
  offer(groupId: GroupId, batches: readonly EventBatch[]): void {
    const { byFilter } = this.#readersOf(groupId);
    if (byFilter.size === 0) return;
    let left = levelsMax + batches.length * levelsPerBatchMax;
    let given = 0;
    const behind = new Set<Audience>();
    for (const batch of batches) {
      const isOver = given >= givenMax;
      const onMatch = (audience: Audience): void => {
        if (behind.has(audience)) return;
        if (isOver) behind.add(audience);
        else given += audience.size;
        for (const reader of audience) {
          if (isOver) reader.fallBehind();
          else reader.offer(batch);
          this.#ready.add(reader);
        }
      };
      left -= byFilter.match(batch.topic, { onMatch, levelsMax: left });
      // Stop here: this loop does not yield, so many patterns that nearly match would block the event loop. A reader that was not offered this batch
      // reads it from the store too.
      if (left <= 0) return this.fallBehind(groupId);
    }
    this.#wakeSoon();
  }

  /**
   * Passes an event that is not committed to the chain to the readers with matching filters. Returns a promise if the event must wait: for earlier events of
   * the group, so that all readers get them in one order, or because there are too many readers for one slice. @throws BrokerError 200300 if too many events
   * wait, or if it would take too long to find these readers; then nobody gets the event. If the event waits, the second error
   * rejects the promise.
   */
  pass(groupId: GroupId, event: Event): Promise<void> | undefined {
    const readers = this.#readersOf(groupId);
    const before = readers.passing ?? this.#slices.pause();
    const passed = before === undefined ? this.#passNow(readers, event) : this.#passAfter(before, readers, event);
    if (passed === undefined) return undefined;
    const onPassed = (): void => {
      if (readers.passing === passing) readers.passing = undefined;
    };
    const passing = passed.then(onPassed, onPassed);
    readers.passing = passing;
    return passed;
  }

  #passAfter(before: Promise<void>, readers: GroupReaders, event: Event): Promise<void> {
    const bytes = event.content.byteLength + extensionsBytes(event.extensions) + waitingOverheadBytes;
    if (this.#passBytesWaiting + bytes > passBytesWaitingMax)
      throw new BrokerError("busy", { details: "too many publishes wait for their subscribers" });
    this.#passBytesWaiting += bytes;
    return before
      .then(() => this.#slices.pause()) // Even an event that matches no reader takes up to 1 ms.
      .finally(() => void (this.#passBytesWaiting -= bytes))
      .then(() => this.#passNow(readers, event));
  }

  #passNow({ byFilter }: GroupReaders, event: Event): Promise<void> | undefined {
    const matching = new Map<Reader, TopicFilter[]>();
    const onMatch = (audience: Audience, filter: TopicFilter): void => {
      for (const reader of audience) {
        const filters = matching.get(reader);
        if (filters === undefined) matching.set(reader, [filter]);
        else filters.push(filter);
      }
    };
    const levels = byFilter.match(event.topic, { onMatch, levelsMax: levelsPerPassMax });
    if (levels >= levelsPerPassMax)
      throw new BrokerError("busy", { details: "too many filters match the first levels of the topic" });
    return this.#passTo(matching.entries(), event);
  }

  /** Passes the event to each reader that the iterator still has. */
  #passTo(rest: IterableIterator<[Reader, readonly TopicFilter[]]>, event: Event): Promise<void> | undefined {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      const [reader, filters] = next.value;
      reader.pass(event, filters);
      const pause = this.#slices.pause();
      if (pause !== undefined) return pause.then(() => this.#passTo(rest, event));
    }
    return undefined;
  }

  /** Makes every reader of a group read the next indexed batches from the store. Call it in the turn in which the progress moves. */
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

  /** Never rejects. Wakes in slices, as a batch may have thousands of readers: publishers get their answers between two slices. */
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
    const readers = { all: new Set<Reader>(), byFilter: new FilterMap<Audience>(), passing: undefined };
    this.#groups.set(groupId, readers);
    return readers;
  }
}
