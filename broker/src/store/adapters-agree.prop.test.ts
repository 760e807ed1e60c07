import { topicDigest } from "@stele/wire";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EventBatch } from "../domain/event.ts";
import type { PendingEvents } from "../domain/pending-events.ts";
import { advance, before, fromStored, type Position, positionZero, toPosition } from "../domain/position.ts";
import { parseTopicName, type TopicName } from "../domain/topic-name.ts";
import { checksumOfBytes } from "../lib/bytes-checksum.ts";
import type { BlockRef } from "../ports/ledger.ts";
import {
  type BatchRange,
  type IndexedBlock,
  reorganisationBlocksMax,
  type RetainedChange,
  type RetainedEvent,
  type Store,
} from "../ports/store.ts";
import { readIndex } from "../ports/store-rollback.contract.ts";
import { batchOf, blockOf, group, topicOf } from "../ports/store-examples.contract.ts";
import { createMemoryStore } from "./memory/memory-store.ts";
import { createPostgresStore } from "./sql/postgres/postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./sql/postgres/testing/postgres-server.ts";
import { createSqlStore } from "./sql/sql-store.ts";
import { migratedFile } from "./sql/migrations/migrated-file.contract.ts";

const names = ["a", "b", "c"].map((name) => parseTopicName(name));
const nameArbitrary = fc.constantFrom(...names);

/** One step of a history: events of one topic, stored or skipped, in the current block or `blocksOn` blocks later. */
const stepArbitrary = fc.record({
  name: nameArbitrary,
  count: fc.integer({ min: 1, max: 5 }),
  bytes: fc.integer({ min: 0, max: 40 }),
  isSkipped: fc.boolean(),
  /** The event that becomes the retained one, or clears it if `isEmpty`; undefined if the retained event stays. */
  retained: fc.option(fc.record({ which: fc.nat(4), isEmpty: fc.boolean() }), { nil: undefined }),
  blocksOn: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 2 }) },
    { weight: 1, arbitrary: fc.constantFrom(1_500, reorganisationBlocksMax + 1) },
  ),
});
type Step = typeof stepArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

const placeArbitrary = fc.record({ block: fc.integer({ min: 0, max: 25 }), index: fc.integer({ min: 0, max: 12 }) });
const rangeArbitrary = fc.record({
  after: placeArbitrary,
  upTo: placeArbitrary,
  topic: fc.option(nameArbitrary, { nil: undefined }),
  batchesMax: fc.integer({ min: 1, max: 8 }),
  bytesMax: fc.integer({ min: 1, max: 120 }),
});

function toBlocks(steps: readonly Step[]): readonly IndexedBlock[] {
  const blocks = [blockOf(1, { opened: names.map((name, index) => topicOf(name, index + 1)) })];
  const sequences = new Map<TopicName, number>();
  let index = 0;
  for (const step of steps) {
    const last = blocks.at(-1) ?? blockOf(1);
    if (step.blocksOn > 0) index = 0;
    const block = step.blocksOn === 0 ? last : blockOf(last.number + step.blocksOn);
    const sequence = (sequences.get(step.name) ?? 0) + 1;
    sequences.set(step.name, sequence + step.count - 1);
    const next = withStep(block, step, { sequence, index });
    if (!step.isSkipped) index += step.count;
    if (step.blocksOn === 0) blocks.pop();
    blocks.push(next);
  }
  return blocks;
}

function withStep(block: IndexedBlock, step: Step, place: { sequence: number; index: number }): IndexedBlock {
  const { name, count } = step;
  if (step.isSkipped) {
    return { ...block, skippedSequences: [...block.skippedSequences, { name, firstSequence: place.sequence, count }] };
  }
  const events = new Uint8Array(step.bytes).fill(place.sequence);
  const batch = batchOf(name, { block: block.number, ...place, count, events });
  const added = { ...block, batches: [...block.batches, batch] };
  if (step.retained === undefined) return added;
  const others = (block.retained ?? []).filter((change) => change.name !== name);
  return { ...added, retained: [...others, toChange(batch, step.retained)] };
}

function toChange(batch: EventBatch, { which, isEmpty }: NonNullable<Step["retained"]>): RetainedChange {
  const index = which % batch.count;
  const place = { sequence: batch.firstSequence + index, position: advance(batch.firstPosition, index) };
  return { name: batch.topic, retained: isEmpty ? undefined : place };
}

/** The expected retained events: the newest change of each topic. */
function retainedNaively(blocks: readonly IndexedBlock[]): readonly RetainedEvent[] {
  const newest = (topic: TopicName) =>
    blocks.flatMap(({ retained = [] }) => retained).findLast(({ name }) => name === topic)?.retained;
  return names.flatMap((topic) => {
    const place = newest(topic);
    return place === undefined ? [] : [{ topic, ...place }];
  });
}

/** The batches that a range should return, found by checking the position of every event. */
function readNaively(batches: readonly EventBatch[], range: BatchRange): readonly EventBatch[] {
  const found: EventBatch[] = [];
  for (const batch of batches) {
    const bytes = found.reduce((sum, { events }) => sum + events.length, 0);
    if (found.length > 0 && (found.length >= range.batchesMax || bytes >= range.bytesMax)) break;
    const positions = Array.from({ length: batch.count }, (_, index) => advance(batch.firstPosition, index));
    const holdsOne = positions.some((position) => position > range.after && position <= range.upTo);
    if (holdsOne && (range.topic === undefined || range.topic === batch.topic)) found.push(batch);
  }
  return found;
}

function countNaively(batches: readonly EventBatch[], name: TopicName, after: Position): number {
  return batches
    .filter((batch) => batch.topic === name)
    .flatMap((batch) => Array.from({ length: batch.count }, (_, index) => advance(batch.firstPosition, index)))
    .filter((position) => position > after).length;
}

/** Returns one empty store of each kind under test, not started. */
type CreateStores = () => Promise<readonly Store[]>;

const createEmbedded: CreateStores = async () => [createMemoryStore(), createSqlStore({ file: await migratedFile() })];

/** Rounds of histories; a long run sets CHECKS_ROUNDS to try more. */
const rounds = Number(process.env["CHECKS_ROUNDS"] ?? "0.5");
const timeoutMs = 120_000 * rounds;

describe("the memory and the SQLite store", { timeout: timeoutMs }, () => {
  const numRuns = 40 * rounds;
  it("read and count random histories like the model", async () => readAnyHistory(createEmbedded, numRuns));
  it("answer after rollbacks, restarts and new blocks as if the removed blocks had never existed", async () =>
    rollBackAnywhere(createEmbedded, numRuns));
});

describe.runIf(hasPostgres)(titleOf("the PostgreSQL store"), { timeout: timeoutMs }, () => {
  const numRuns = 24 * rounds;
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());
  const create = async () => [createPostgresStore({ url: await server.createSchema(), connectionsMax: 2 })];
  it("reads and counts random histories like the model", async () => readAnyHistory(create, numRuns));
  it("answers after rollbacks, restarts and new blocks as if the removed blocks had never existed", async () =>
    rollBackAnywhere(create, numRuns));
});

async function readAnyHistory(create: CreateStores, numRuns: number): Promise<void> {
  const history = fc.array(stepArbitrary, { maxLength: 25 });
  const ranges = fc.array(rangeArbitrary, { minLength: 1, maxLength: 15 });
  const drops = fc.array(fc.nat(24), { maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(history, ranges, drops, async (steps, ranges, drops) => {
      const blocks = toBlocks(steps);
      const batches = blocks.flatMap((block) => block.batches);
      const chosen = batches.filter((_, index) => drops.includes(index));
      for (const store of await create()) {
        await store.start();
        await store.applyBlocks(group, blocks);
        for (const { after, upTo, ...rest } of ranges) {
          const range = {
            ...rest,
            after: toPosition(after.block, after.index),
            upTo: toPosition(upTo.block, upTo.index),
          };
          await checkRange(store, blocks, range);
        }
        const gone = chosen.filter(({ events }) => events.length > 0);
        expect(await store.dropEvents(group, chosen)).toEqual(gone);
        expect(await store.dropEvents(group, chosen)).toEqual([]);
        for (const { after, upTo, ...rest } of ranges) {
          const places = { after: toPosition(after.block, after.index), upTo: toPosition(upTo.block, upTo.index) };
          const range = { ...rest, ...places };
          const expected = readNaively(batches, range).map((batch) =>
            gone.includes(batch) ? withoutCopy(batch) : batch,
          );
          expect(await store.readBatches(group, range)).toEqual(expected);
          await checkCounts(store, batches, range);
        }
        for (const batch of batches) {
          const found = await store.findBatch(group, { topic: batch.topic, sequence: batch.firstSequence });
          expect(found).toEqual(gone.includes(batch) ? withoutCopy(batch) : batch);
        }
        for (const block of blocks) expect(await store.repairBatches(group, block)).toEqual([]);
        await store.stop();
      }
    }),
    { numRuns },
  );
}

async function rollBackAnywhere(create: CreateStores, numRuns: number): Promise<void> {
  const history = fc.array(stepArbitrary, { minLength: 1, maxLength: 25 });
  const cuts = fc.array(fc.nat(), { minLength: 1, maxLength: 3 });
  const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(history, cuts, sizes, async (steps, cuts, sizes) => {
      const blocks = toBlocks(steps);
      for (const store of await create()) {
        await store.start();
        for (const cut of cuts) {
          await applyFrom(store, blocks, sizes);
          const reachable = reachableOf(blocks);
          expect(await store.listBlocks(group, { atMost: 99 })).toEqual(reachable);
          const to = reachable[cut % reachable.length] ?? blockOf(1);
          const keep = blocks.filter(({ number }) => number <= to.number);
          const { eventCount } = await store.rollBack(group, to);
          const gone = blocks.slice(keep.length).flatMap((block) => block.batches);
          expect(eventCount).toBe(gone.reduce((sum, { count }) => sum + count, 0));
          for (const batch of gone) {
            const { topic, firstSequence: sequence, blockNumber } = batch;
            const found = await store.findVanished(group, { digest: topicDigest(topic), sequence, blockNumber });
            expect(found).toEqual(expect.objectContaining(placeOf(batch)));
          }
          await expectSame(store, keep);
          await store.stop();
          await store.start();
          await expectSame(store, keep);
        }
        await applyFrom(store, blocks, sizes);
        await expectSame(store, blocks);
        await store.stop();
      }
    }),
    { numRuns },
  );
}

function placeOf({ topic, firstSequence, firstPosition, count, transactionHash, logIndex }: EventBatch): unknown {
  return { topic, firstSequence, firstPosition, count, transactionHash, logIndex };
}

/** Applies the blocks that the store lacks, in steps of these sizes. */
async function applyFrom(store: Store, blocks: readonly IndexedBlock[], sizes: readonly number[]): Promise<void> {
  const head = (await store.findHead(group))?.blockNumber ?? -1;
  const rest = blocks.filter(({ number }) => number > head);
  for (let step = 0; rest.length > 0; step += 1)
    await store.applyBlocks(group, rest.splice(0, sizes[step % sizes.length]));
}

/** The blocks to which an index of these blocks can roll back, newest first, if it has not rolled back yet. */
function reachableOf(blocks: readonly IndexedBlock[]): readonly BlockRef[] {
  const start = (blocks.at(-1)?.number ?? 0) - reorganisationBlocksMax;
  const first = blocks.findIndex(({ number }) => number >= start);
  const reachable = blocks.slice(Math.max(0, first - 1)).toReversed();
  return reachable.map(({ number, hash }) => ({ number, hash }));
}

/** Expects the same answers as from an index that received only these blocks. */
async function expectSame(store: Store, blocks: readonly IndexedBlock[]): Promise<void> {
  const fresh = createMemoryStore();
  await fresh.applyBlocks(group, blocks);
  expect(await readIndex(store)).toEqual(await readIndex(fresh));
  const page = { prefix: "", after: undefined, limit: 9 };
  expect(await store.listRetained(group, page)).toEqual(retainedNaively(blocks));
}

/** Counts the events of a range by topic, page by page. */
async function countRangeByPages(store: Store, { after, upTo, batchesMax }: BatchRange) {
  const found = new Map<TopicName, PendingEvents>();
  for (let from = after; from < upTo; ) {
    const page = await store.countRange(group, { after: from, upTo, batchesMax });
    for (const { topic, count, first } of page.counts) {
      const known = found.get(topic);
      found.set(topic, { count: (known?.count ?? 0) + count, first: known?.first ?? first });
    }
    expect(page.upTo).toBeGreaterThan(from);
    from = page.upTo;
  }
  return found;
}

function countRangeNaively(batches: readonly EventBatch[], { after, upTo }: BatchRange) {
  const found = new Map<TopicName, PendingEvents>();
  for (const { topic, firstPosition, count } of batches) {
    for (let position = firstPosition as number; position < firstPosition + count; position += 1) {
      if (position <= after || position > upTo) continue;
      const known = found.get(topic);
      found.set(topic, { count: (known?.count ?? 0) + 1, first: known?.first ?? fromStored(position) });
    }
  }
  return found;
}

async function checkRange(store: Store, blocks: readonly IndexedBlock[], range: BatchRange): Promise<void> {
  const batches = blocks.flatMap((block) => block.batches);
  expect(await store.readBatches(group, range)).toEqual(readNaively(batches, range));
  await checkCounts(store, batches, range);
}

/** The batch as a store returns it after dropEvents. */
function withoutCopy(batch: EventBatch): EventBatch {
  const dropped = { byteCount: batch.events.length, checksum: checksumOfBytes(batch.events) };
  return { ...batch, events: new Uint8Array(0), dropped };
}

async function checkCounts(store: Store, batches: readonly EventBatch[], range: BatchRange): Promise<void> {
  const name = range.topic ?? parseTopicName("a");
  expect(await store.countEventsAfter(group, name, range.after)).toBe(countNaively(batches, name, range.after));
  expect(await store.countEventsAfter(group, name, positionZero)).toBe(countNaively(batches, name, positionZero));
  const places = [positionZero, range.after, range.upTo].map((after) => ({ topic: name, after }));
  const counts = places.map(({ after }) => countNaively(batches, name, after));
  const found = await store.countEventsAfterEach(group, places);
  expect(found.map(({ count }) => count)).toEqual(counts);
  for (const { count, first } of found) {
    expect(first === undefined ? 0 : countNaively(batches, name, before(first))).toBe(count);
  }
  expect(await countRangeByPages(store, range)).toEqual(countRangeNaively(batches, range));
}
