import type { CompiledQuery, Kysely } from "kysely";
import type { EventBatch } from "../../../domain/event.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import { nonePending, type PendingEvents } from "../../../domain/pending-events.ts";
import {
  blockNumberMax,
  blockOf,
  endOfBlock,
  eventsPerBlockMax,
  fromStored,
  type Position,
} from "../../../domain/position.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { type BatchRange, damagedBlocksMax, IndexDamagedError } from "../../../ports/store.ts";
import { checksumOfBytes } from "../../../lib/bytes-checksum.ts";
import { createBatchQueries, type Ends } from "./batch-queries.ts";
import type { IndexQueries } from "./index-queries.ts";
import { checksumOfRow } from "../row-checksums.ts";
import { fromBatchRow, type KeyedTopic } from "../rows.ts";
import type { BatchTable, Schema, SqlDatabase } from "../schema.ts";

/** Maximum number of reads of a range that seems to lack batches. A reorg may happen between two statements, or an index of the database may be damaged. */
const readsMax = 3;

/** A batch's row without its events. */
export type BatchPlace = Omit<BatchTable, "events">;

/** Result of one read; `missing` gives the positions between which batches seem to be missing. */
interface ReadOutcome<Value> {
  readonly value: Value;
  readonly missing?: { readonly after: number; readonly before: number } | undefined;
}

/** A counter of batches that has no gaps: `ordinal` in the group, or `events_before` in the topic. */
interface Density {
  readonly numberOf: (row: BatchPlace) => number;
  readonly widthOf: (row: BatchPlace) => number;
  readonly ends: (range: { readonly after: number; readonly last: number }) => CompiledQuery<Ends>;
}

export interface SqlBatchesOptions {
  readonly shared: SqlDatabase;
  readonly queries: IndexQueries;
  readonly findTopic: (groupId: GroupId, name: TopicName) => Promise<KeyedTopic | undefined>;
}

/** Reads batches. It returns only intact batches, and it detects a batch that the database fails to find. */
export class SqlBatches {
  readonly #options: SqlBatchesOptions;
  readonly #database: Kysely<Schema>;
  readonly #own;
  #isReindexed = false;

  constructor(options: SqlBatchesOptions) {
    this.#options = options;
    this.#database = options.shared.relaxed;
    this.#own = createBatchQueries(options.shared.relaxed);
  }

  async find(groupId: GroupId, name: TopicName, sequence: number): Promise<EventBatch | undefined> {
    const { queries, findTopic } = this.#options;
    return this.#readUntilComplete(groupId, async () => {
      const topic = await findTopic(groupId, name);
      if (topic === undefined) return { value: undefined };
      const { topicId } = topic;
      const [row] = await this.#read(queries.findBatch.bind({ topicId, sequence }));
      const value = row && toBatch(row, name);
      if (value !== undefined && sequence < value.firstSequence + value.count) return { value };
      return { value: undefined, missing: await this.#findMissing(topic, { row, sequence }) };
    });
  }

  async read(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    if (range.upTo <= range.after) return [];
    const { topic } = range;
    return this.#readUntilComplete(groupId, async () =>
      topic === undefined ? this.#readOfGroup(groupId, range) : this.#readOfTopic(groupId, range, topic),
    );
  }

  /** Number of the topic's events after the position. */
  async countAfter(topic: KeyedTopic, after: Position): Promise<number> {
    const [next] = await this.#read(this.#options.queries.findNextBatch.bind({ topicId: topic.topicId, after }));
    if (next === undefined) return 0;
    return findFrom(checkPlace(next, topic.topic.name), { total: topic.eventCount, after }).count;
  }

  /** Searches for a gap at a sequence that no batch contains. There is none if `events_before` counts no stored event between the neighbouring batches. */
  async #findMissing(
    topic: KeyedTopic,
    { row, sequence }: { readonly row: BatchPlace | undefined; readonly sequence: number },
  ): Promise<ReadOutcome<never>["missing"]> {
    const [next] = await this.#read(this.#options.queries.findNextSequence.bind({ topicId: topic.topicId, sequence }));
    if (next !== undefined) checkPlace(next, topic.topic.name);
    const expected = row === undefined ? 0 : row.events_before + countOf(row);
    if ((next?.events_before ?? topic.eventCount) <= expected) return undefined;
    return { after: row?.last_position ?? -1, before: next?.first_position ?? endOfBlock(topic.topic.blockNumber) };
  }

  async #readOfGroup(groupId: GroupId, range: BatchRange): Promise<ReadOutcome<readonly EventBatch[]>> {
    const { queries } = this.#options;
    const sizes = await this.#read(queries.findSizes.bind({ groupId, ...bounds(range) }));
    const last = lastWithin(sizes, range.bytesMax);
    const rows =
      last === undefined ? [] : await this.#read(queries.readBatches.bind({ groupId, after: range.after, last }));
    const value = rows.map((row) => toBatch(row, row.name ?? ""));
    const density: Density = {
      numberOf: ({ ordinal }) => ordinal,
      widthOf: () => 1,
      ends: (range) => this.#own.endsInGroup.bind({ groupId, ...range }),
    };
    return { value, missing: await this.#findGap(rows, range, { density, isCut: isCut(sizes, last, range) }) };
  }

  async #readOfTopic(
    groupId: GroupId,
    range: BatchRange,
    name: TopicName,
  ): Promise<ReadOutcome<readonly EventBatch[]>> {
    const { queries, findTopic } = this.#options;
    const topic = await findTopic(groupId, name);
    if (topic === undefined) return { value: [] };
    const { topicId } = topic;
    const sizes = await this.#read(queries.findSizesOfTopic.bind({ topicId, ...bounds(range) }));
    const last = lastWithin(sizes, range.bytesMax);
    const rows =
      last === undefined
        ? []
        : await this.#read(queries.readBatchesOfTopic.bind({ topicId, after: range.after, last }));
    const value = rows.map((row) => toBatch(row, name));
    const density: Density = {
      numberOf: (row) => row.events_before,
      widthOf: countOf,
      ends: (range) => this.#own.endsInTopic.bind({ topicId, ...range }),
    };
    return { value, missing: await this.#findGap(rows, range, { density, isCut: isCut(sizes, last, range) }) };
  }

  /** The first gap in a range, if any. Does not check the end of a read that a limit cut short: the next read begins there and checks it. */
  async #findGap(
    rows: readonly BatchPlace[],
    range: BatchRange,
    { density, isCut }: { readonly density: Density; readonly isCut: boolean },
  ): Promise<ReadOutcome<never>["missing"]> {
    const last = rows.at(-1);
    const end = Math.max(range.after, last?.last_position ?? -1);
    const [ends] = await this.#read(density.ends({ after: range.after, last: end }));
    let next = ends?.first ?? 0;
    let after: number = range.after;
    for (const row of rows) {
      if (density.numberOf(row) !== next) return { after, before: row.first_position };
      next += density.widthOf(row);
      after = row.last_position;
    }
    const isCovered = isCut || ends === undefined || ends.next <= next;
    return isCovered ? undefined : { after, before: endOfBlock(blockOf(range.upTo)) };
  }

  /**
   * Repeats a read that lacks batches, the last time with rebuilt indexes: the indexes may be damaged while the rows are intact.
   * @throws IndexDamagedError if the last read also lacks batches.
   */
  async #readUntilComplete<Value>(groupId: GroupId, read: () => Promise<ReadOutcome<Value>>): Promise<Value> {
    for (let reads = 1; ; reads += 1) {
      const { value, missing } = await read();
      if (missing === undefined) return value;
      if (reads === readsMax) throw await this.#toError(groupId, missing);
      if (reads === readsMax - 1) await this.#reindexOnce();
    }
  }

  /** Rebuilds the indexes, but only once until `onRepaired` is called: a rebuild scans the whole table. */
  async #reindexOnce(): Promise<void> {
    if (this.#isReindexed) return;
    this.#isReindexed = true;
    await this.#options.shared.reindexBatches();
  }

  /** Allows another rebuild: after a repair of rows, a missing row may have another cause. */
  onRepaired(): void {
    this.#isReindexed = false;
  }

  async #toError(
    groupId: GroupId,
    { after, before }: { readonly after: number; readonly before: number },
  ): Promise<Error> {
    const [previous] = await this.#read(this.#own.beforeInGroup.bind({ groupId, position: after }));
    const [next] = await this.#read(this.#own.afterInGroup.bind({ groupId, position: before - 1 }));
    for (const row of [previous, next]) if (row !== undefined) checkPlace(row, row.name ?? "");
    const [from, to] = [numberOf(after), numberOf(before)];
    const what = `batches are missing from block ${from} to ${to}`;
    if (to - from >= damagedBlocksMax) return new IndexDamagedError(what, []);
    return new IndexDamagedError(
      what,
      Array.from({ length: to - from + 1 }, (_, index) => from + index),
    );
  }

  async #read<Row>(query: CompiledQuery<Row>): Promise<readonly Row[]> {
    return (await this.#database.executeQuery(query)).rows;
  }
}

/** Whether the row, except its events, is an intact row of the topic `name`. */
export function isIntactPlace(row: BatchPlace, name: string): boolean {
  return checksumOfRow("batches", row, name) === writtenChecksum(row);
}

/** Returns the row if it is an intact row of the topic `name`. @throws IndexDamagedError. */
export function checkPlace<Row extends BatchPlace>(row: Row, name: string): Row {
  if (!isIntactPlace(row, name)) throw damagedRow(row, name);
  return row;
}

/** Decodes a batch of the topic `name`. @throws IndexDamagedError if its row or its events are damaged. */
export function toBatch(row: BatchTable, name: string): EventBatch {
  checkPlace(row, name);
  if (isDropped(row)) {
    if (!isBytes(row.events) || row.events.length > 0) throw damagedRow(row, name);
    return { ...fromBatchRow(row, name), dropped: { byteCount: row.byte_count, checksum: row.events_checksum } };
  }
  if (!isBytes(row.events) || checksumOfBytes(row.events) !== row.events_checksum) throw damagedRow(row, name);
  return fromBatchRow(row, name);
}

/** The checksum with which the row was inserted. dropEvents makes it negative: a batch without events whose checksum is not negative is damaged. */
export function writtenChecksum(row: Pick<BatchPlace, "checksum">): number {
  return isDropped(row) ? -1 - row.checksum : row.checksum;
}

function isDropped({ checksum }: Pick<BatchPlace, "checksum">): boolean {
  return checksum < 0;
}

export function countOf(row: Pick<BatchPlace, "first_position" | "last_position">): number {
  return row.last_position - row.first_position + 1;
}

/** The events of a topic after `after`. These are its `total` events without those before the batch `next` and without those of `next` up to `after`. */
export function findFrom(
  next: BatchPlace,
  { total, after }: { readonly total: number; readonly after: Position },
): PendingEvents {
  const inBatch = Math.max(0, after - next.first_position + 1);
  const count = total - next.events_before - inBatch;
  // The index may change between the look-ups of topic and batch.
  return count > 0 ? { count, first: fromStored(next.first_position + inBatch) } : nonePending;
}

/** Whether a column holds bytes; that of a damaged row may hold any value. */
function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

/** Names the blocks of both positions, since either position may be the damaged value. */
function damagedRow(row: BatchPlace, name: string): IndexDamagedError {
  const blocks = [row.first_position, row.last_position].map(numberOf);
  const place = `sequence ${row.first_sequence} of topic ${JSON.stringify(name)} in block ${blocks[0]}`;
  const candidates = [...new Set(blocks)].filter((block) => block <= blockNumberMax);
  return new IndexDamagedError(`the batch at ${place} is damaged`, candidates);
}

/** The block of a position, which may be damaged and hold any value. */
function numberOf(position: number): number {
  return Math.max(0, Math.floor(position / eventsPerBlockMax));
}

function bounds(range: BatchRange) {
  const { after, upTo, batchesMax } = range;
  return { after, upTo, upToEndOfBlock: endOfBlock(blockOf(upTo)), limit: batchesMax };
}

type Size = Pick<BatchTable, "last_position" | "byte_count">;

/** The last position of the batch that reaches the byte limit, or of the last batch if none does. */
function lastWithin(sizes: readonly Size[], bytesMax: number): number | undefined {
  let bytes = 0;
  for (const size of sizes) {
    bytes += size.byte_count;
    if (bytes >= bytesMax) return size.last_position;
  }
  return sizes.at(-1)?.last_position;
}

/** Whether a limit ended the read before the end of the range. */
function isCut(sizes: readonly Size[], last: number | undefined, range: BatchRange): boolean {
  return sizes.length >= range.batchesMax || last !== sizes.at(-1)?.last_position;
}
