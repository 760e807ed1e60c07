import { topicDigest } from "@stele/wire";
import { type Event, type EventBatch, eventBytesOf, isDropped, lastPositionOf } from "../../domain/event.ts";
import { isInRanges } from "../../domain/name-range.ts";
import { nonePending, type PendingEvents } from "../../domain/pending-events.ts";
import { advance, endOfBlock, fromStored, type Position } from "../../domain/position.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { VanishedBatch } from "../../domain/vanished-events.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import {
  type ApplyOptions,
  type BatchRange,
  type EventPlace,
  IndexDamagedError,
  type IndexedBlock,
  type IndexHead,
  type RetainedChange,
  type RetainedEvent,
  type RetainedPage,
  type RetainedPlace,
  type RollBack,
  type SkippedEntry,
  skippedEntriesMax,
  type PositionRange,
  type RangeCounts,
  type TopicPage,
  type TopicQuery,
  type TopicSize,
  type TopicRange,
  vanishedBatchesMax,
} from "../../ports/store.ts";
import {
  assertHasBlock,
  type BatchRecord,
  type BlockUndo,
  planBlocks,
  planRollBack,
  type TopicRecord,
  withImage,
  withinWindow,
} from "../index-plan.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { checksumOf } from "../checksum.ts";
import { lowerBound } from "./lower-bound.ts";

const lastPositionOfRecord = (record: BatchRecord): number => lastPositionOf(record.batch);
const lastSequenceOfRecord = (record: BatchRecord): number => record.batch.firstSequence + record.batch.count - 1;

/** Maximum number of cached counts of topics. One more empties the cache. */
const countsKeptMax = 10_000;

interface KeptBatch extends BatchRecord {
  readonly checksum: number;
}

/** One group's topics and batches. */
export class GroupIndex {
  #head: Omit<IndexHead, "generation"> | undefined;
  #generation = 0;
  readonly #topics = new Map<TopicName, TopicRecord>();
  readonly #names: TopicName[] = [];
  /** By prefix: `count` is the number of names with the prefix among the first `names` entries of `#names`. */
  readonly #counts = new Map<string, { readonly names: number; readonly count: number }>();
  readonly #nameByAddress = new Map<Address, TopicName>();
  readonly #namesByDigest = new Map<string, TopicName[]>();
  readonly #batches: KeptBatch[] = [];
  readonly #batchesByTopic = new Map<TopicName, KeptBatch[]>();
  /** Blocks that a rollback can remove, ascending, and the block before them. */
  #undo: readonly BlockUndo[] = [];
  #vanished: VanishedBatch[] = [];
  readonly #retained = new Map<TopicName, RetainedPlace>();
  /** Names of topics that retain an event, ascending; undefined until first used. */
  #retainedNames: readonly TopicName[] | undefined;
  /** Skipped entries, oldest first. */
  #skippedEntries: readonly SkippedEntry[] = [];

  get head(): IndexHead | undefined {
    return this.#head && { ...this.#head, generation: this.#generation };
  }

  /** Number of rollbacks. */
  get generation(): number {
    return this.#generation;
  }

  apply(blocks: readonly IndexedBlock[], options: ApplyOptions): void {
    const { after } = options;
    const totals = { topicsTotal: this.#names.length, batchesTotal: this.#batches.length };
    const state = { head: this.#head, after, ...totals, topics: this.#topics, retained: this.#retained };
    const plan = planBlocks(blocks, state);
    for (const record of plan.opened) this.#insert(record);
    for (const record of plan.changed) this.#topics.set(record.topic.name, record);
    for (const record of plan.batches) {
      const kept = { ...record, checksum: checksumOfBatch(record.batch) };
      this.#batches.push(kept);
      this.#batchesByTopic.get(record.batch.topic)?.push(kept);
    }
    this.#retain(plan.retained);
    const skippedEntries = blocks.flatMap((block) => block.skippedEntries ?? []);
    if (skippedEntries.length > 0)
      this.#skippedEntries = [...this.#skippedEntries, ...skippedEntries].slice(-skippedEntriesMax);
    this.#head = plan.head;
    this.#undo = options.isFinal ? [] : withinWindow([...this.#undo, ...plan.undo], plan.head);
  }

  /** Up to `atMost` blocks before `below` to which `rollBack` can go, newest first. */
  listBlocks(atMost: number, below: number): readonly BlockRef[] {
    const kept = this.#undo.filter(({ number }) => number < below).toReversed();
    const refs = kept.slice(0, atMost).map(({ number, hash }) => ({ number, hash }));
    if (this.#undo.length > 0 || this.#head === undefined || this.#head.blockNumber >= below) return refs;
    return [{ number: this.#head.blockNumber, hash: this.#head.hash }].slice(0, atMost);
  }

  rollBack(to: BlockRef | undefined): RollBack & { readonly vanished: readonly VanishedBatch[] } {
    if (
      to !== undefined &&
      !this.listBlocks(Number.POSITIVE_INFINITY, to.number + 1).some(({ hash }) => hash === to.hash)
    )
      throw new Error(`index: cannot roll back to block ${to.number}`);
    const target = to?.number ?? -1;
    const { topicsTotal, images, retained } = planRollBack(this.#undo.filter(({ number }) => number > target));
    const vanished = this.#dropBatches(to === undefined ? -1 : endOfBlock(to.number));
    const topicCount = this.#dropTopics(to === undefined ? 0 : (topicsTotal ?? this.#names.length));
    for (const image of to === undefined ? [] : images) {
      const record = this.#topics.get(this.#names[image.ordinal - 1] ?? ("" as TopicName)); // No topic has the empty name.
      if (record !== undefined) this.#topics.set(record.topic.name, withImage(record, image));
    }
    this.#retain(to === undefined ? [...this.#retained.keys()].map((name) => ({ name })) : retained);
    this.#head = to === undefined ? undefined : { blockNumber: to.number, hash: to.hash };
    this.#generation += 1;
    this.#undo = this.#undo.filter(({ number }) => number <= target);
    this.#skippedEntries = this.#skippedEntries.filter(({ blockNumber }) => blockNumber <= target);
    this.#vanished = [...this.#vanished, ...vanished].slice(-vanishedBatchesMax);
    return { vanished, eventCount: vanished.reduce((sum, { count }) => sum + count, 0), topicCount };
  }

  findVanished({ digest, sequence, blockNumber }: EventPlace): VanishedBatch | undefined {
    return this.#vanished.findLast(
      (batch) =>
        batch.blockNumber === blockNumber &&
        batch.firstSequence <= sequence &&
        sequence < batch.firstSequence + batch.count &&
        topicDigest(batch.topic) === digest,
    );
  }

  /** Newest first. */
  listSkippedEntries(atMost: number): readonly SkippedEntry[] {
    return this.#skippedEntries.toReversed().slice(0, atMost);
  }

  findTopic(name: TopicName): Topic | undefined {
    return this.#topics.get(name)?.topic;
  }

  findTopics(names: readonly TopicName[]): readonly Topic[] {
    return this.#topicsOf(names);
  }

  findTopicsByAddress(addresses: readonly Address[]): readonly Topic[] {
    return this.#topicsOf(addresses.flatMap((address) => this.#nameByAddress.get(address) ?? []));
  }

  findTopicsByDigest(digest: string): readonly Topic[] {
    return this.#topicsOf(this.#namesByDigest.get(digest) ?? []);
  }

  listTopics({ offset, limit, ranges }: TopicQuery): TopicPage {
    const names = ranges === undefined ? this.#names : this.#names.filter((name) => isInRanges(name, ranges));
    return { total: names.length, topics: this.#topicsOf(names.slice(offset, offset + limit)) };
  }

  /** Reads only the topics that were opened since the last count of the prefix. See `Store.countTopics`. */
  countTopics(prefix: string, except: readonly string[]): number {
    const known = this.#counts.get(prefix);
    const later = this.#names.slice(known?.names ?? 0).filter((name) => name.startsWith(prefix));
    const count = (known?.count ?? 0) + later.length;
    if (known === undefined && this.#counts.size >= countsKeptMax) this.#counts.clear();
    this.#counts.set(prefix, { names: this.#names.length, count });
    const excepted = [...new Set(except)].filter((name) => name.startsWith(prefix));
    return count - excepted.filter((name) => this.#topics.has(name as TopicName)).length; // Any text may be looked up.
  }

  findBatch(event: Pick<Event, "topic" | "sequence">): EventBatch | undefined {
    const records = this.#batchesByTopic.get(event.topic) ?? [];
    const record = records[lowerBound(records, event.sequence, lastSequenceOfRecord)];
    return record !== undefined && record.batch.firstSequence <= event.sequence ? intact(record) : undefined;
  }

  /** Replaces damaged batches; see `Store.repairBatches`. */
  repair(block: IndexedBlock): readonly EventBatch[] {
    const [head] = this.listBlocks(1, Number.POSITIVE_INFINITY);
    const [kept] = this.listBlocks(1, block.number + 1);
    assertHasBlock(block, { head, kept });
    return block.batches.filter((batch) => {
      const kept = this.#batches[lowerBound(this.#batches, lastPositionOf(batch), lastPositionOfRecord)];
      if (kept?.checksum === checksumOfBatch(batch) && checksumOfBatch(kept.batch) === kept.checksum) return false;
      return kept !== undefined && this.#replace(kept, batch);
    });
  }

  /** See `Store.dropEvents`. */
  drop(batches: readonly EventBatch[]): readonly EventBatch[] {
    return batches.filter((batch) => {
      const kept = this.#batches[lowerBound(this.#batches, lastPositionOf(batch), lastPositionOfRecord)];
      if (kept === undefined || isDropped(kept.batch) || kept.checksum !== checksumOfBatch(batch)) return false;
      if (batch.events.length === 0) return false;
      const dropped = { byteCount: batch.events.length, checksum: checksumOfBytes(batch.events) };
      return this.#replace(kept, { ...batch, events: new Uint8Array(0), dropped });
    });
  }

  readBatches(range: BatchRange): readonly EventBatch[] {
    if (range.upTo <= range.after) return [];
    const records = range.topic === undefined ? this.#batches : (this.#batchesByTopic.get(range.topic) ?? []);
    const found: EventBatch[] = [];
    let bytes = 0;
    for (let index = lowerBound(records, range.after + 1, lastPositionOfRecord); index < records.length; index += 1) {
      const record = records[index];
      if (record === undefined || record.batch.firstPosition > range.upTo) break;
      const batch = intact(record);
      found.push(batch);
      bytes += batch.dropped?.byteCount ?? batch.events.length;
      if (found.length >= range.batchesMax || bytes >= range.bytesMax) break;
    }
    return found;
  }

  listRetained({ prefix, after, limit }: RetainedPage): readonly RetainedEvent[] {
    this.#retainedNames ??= [...this.#retained.keys()].toSorted();
    const names = this.#retainedNames;
    const start = names.findIndex((name) => name >= prefix && (after === undefined || name > after));
    const page = start < 0 ? [] : names.slice(start, start + limit).filter((name) => name.startsWith(prefix));
    return page.flatMap((topic) => {
      const place = this.#retained.get(topic);
      return place === undefined ? [] : { topic, ...place };
    });
  }

  findEventsAfter(name: TopicName, after: Position): PendingEvents {
    const total = this.#topics.get(name)?.eventCount ?? 0;
    const records = this.#batchesByTopic.get(name) ?? [];
    const next = records[lowerBound(records, after + 1, lastPositionOfRecord)];
    if (next === undefined) return nonePending;
    const inBatch = Math.max(0, after - next.batch.firstPosition + 1);
    return { count: total - next.eventsBefore - inBatch, first: advance(next.batch.firstPosition, inBatch) };
  }

  countRange({ after, upTo, batchesMax }: PositionRange): RangeCounts {
    const counts = new Map<TopicName, PendingEvents>();
    const start = lowerBound(this.#batches, after + 1, lastPositionOfRecord);
    let end = start;
    for (; end < start + batchesMax; end += 1) {
      const batch = this.#batches[end]?.batch;
      if (batch === undefined || batch.firstPosition > upTo) break;
      const first = fromStored(Math.max(batch.firstPosition, after + 1));
      const count = Math.min(lastPositionOf(batch), upTo) - first + 1;
      const known = counts.get(batch.topic);
      counts.set(batch.topic, { count: (known?.count ?? 0) + count, first: known?.first ?? first });
    }
    const last = end < start + batchesMax ? undefined : this.#batches[end - 1];
    return {
      counts: [...counts].map(([topic, events]) => ({ topic, ...events })),
      upTo: last === undefined ? upTo : fromStored(Math.min(upTo, lastPositionOfRecord(last))),
    };
  }

  measureTopic({ topic, upTo, batchesMax }: TopicRange): TopicSize {
    const records = this.#batchesByTopic.get(topic) ?? [];
    const end = lowerBound(records, upTo + 1, lastPositionOfRecord);
    const found = records.slice(Math.max(0, end - batchesMax), end);
    const byteCount = found.reduce((sum, { batch }) => sum + eventBytesOf(batch), 0);
    return { batchCount: found.length, byteCount, first: found[0]?.batch.firstPosition };
  }

  #replace(kept: KeptBatch, batch: EventBatch): boolean {
    const ofTopic = this.#batchesByTopic.get(batch.topic);
    if (ofTopic === undefined) return false;
    const replaced = { ...kept, batch, checksum: checksumOfBatch(batch) };
    this.#batches[lowerBound(this.#batches, lastPositionOf(batch), lastPositionOfRecord)] = replaced;
    ofTopic[lowerBound(ofTopic, batch.firstSequence, lastSequenceOfRecord)] = replaced;
    return true;
  }

  #insert(record: TopicRecord): void {
    const { name, address } = record.topic;
    const digest = topicDigest(name);
    this.#topics.set(name, record);
    this.#names.push(name);
    this.#nameByAddress.set(address, name);
    this.#namesByDigest.set(digest, [...(this.#namesByDigest.get(digest) ?? []), name]);
    this.#batchesByTopic.set(name, []);
  }

  #retain(changes: readonly RetainedChange[]): void {
    for (const { name, retained } of changes) {
      if (retained === undefined) this.#retained.delete(name);
      else this.#retained.set(name, retained);
    }
    if (changes.length > 0) this.#retainedNames = undefined;
  }

  #dropBatches(after: number): readonly VanishedBatch[] {
    const dropped = this.#batches.splice(lowerBound(this.#batches, after + 1, lastPositionOfRecord));
    for (const { batch } of dropped) this.#batchesByTopic.get(batch.topic)?.pop();
    return dropped.map(({ batch }) => withoutEvents(batch));
  }

  #dropTopics(keep: number): number {
    const names = this.#names.splice(keep);
    if (names.length > 0) this.#counts.clear();
    for (const name of names) {
      const address = this.findTopic(name)?.address;
      if (address !== undefined) this.#nameByAddress.delete(address);
      const digest = topicDigest(name);
      this.#namesByDigest.set(
        digest,
        (this.#namesByDigest.get(digest) ?? []).filter((other) => other !== name),
      );
      this.#topics.delete(name);
      this.#batchesByTopic.delete(name);
    }
    return names.length;
  }

  #topicsOf(names: readonly TopicName[]): readonly Topic[] {
    return names.flatMap((name) => this.findTopic(name) ?? []);
  }
}

function checksumOfBatch(batch: EventBatch): number {
  const { topic, firstSequence, firstPosition, count, transactionHash, logIndex, publisher, events, dropped } = batch;
  const place = [topic, firstSequence, firstPosition, count, transactionHash, logIndex, publisher];
  return checksumOf([...place, dropped?.checksum ?? checksumOfBytes(events)]);
}

/** Returns the batch. @throws IndexDamagedError if it does not match its checksum. */
function intact({ batch, checksum }: KeptBatch): EventBatch {
  if (checksumOfBatch(batch) === checksum) return batch;
  const place = `sequence ${batch.firstSequence} of topic ${JSON.stringify(batch.topic)} in block ${batch.blockNumber}`;
  throw new IndexDamagedError(`the batch at ${place} is damaged`, [batch.blockNumber]);
}

function withoutEvents(batch: EventBatch): VanishedBatch {
  const { topic, firstSequence, firstPosition, count, blockNumber, transactionHash, logIndex } = batch;
  return { topic, firstSequence, firstPosition, count, blockNumber, transactionHash, logIndex };
}
