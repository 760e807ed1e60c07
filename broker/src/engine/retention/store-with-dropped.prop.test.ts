import { encodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { MemoryChain, topicAddress } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { BatchRange, Store } from "../../ports/store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { migratedFile } from "../../store/sql/migrations/migrated-file.contract.ts";
import { createPostgresStore } from "../../store/sql/postgres/postgres-store.ts";
import { hasPostgres, startPostgres } from "../../store/sql/postgres/testing/postgres-server.ts";
import { createSqlStore } from "../../store/sql/sql-store.ts";
import { indexBlocks } from "../index-block.ts";
import { IndexRepair } from "../integrity/index-repair.ts";
import { Troubles } from "../integrity/troubles.ts";
import { createReads } from "./create-retention.ts";

const names = ["a", "b/c", "d"].map((name) => parseTopicName(name));
const unaborted = new AbortController().signal;

/** The contents of a block's batches, each of one topic. */
const blockArbitrary = fc.array(
  fc.record({
    name: fc.constantFrom(...names),
    contents: fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 4 }),
  }),
  { maxLength: 4 },
);
const placeArbitrary = fc.record({ block: fc.integer({ min: 0, max: 40 }), index: fc.integer({ min: 0, max: 12 }) });
const rangeArbitrary = fc.record({
  after: placeArbitrary,
  upTo: placeArbitrary,
  topic: fc.option(fc.constantFrom(...names), { nil: undefined }),
  batchesMax: fc.integer({ min: 1, max: 40 }),
  bytesMax: fc.integer({ min: 1, max: 2_000 }),
});
const historyArbitrary = fc.record({
  blocks: fc.array(blockArbitrary, { minLength: 1, maxLength: 30 }),
  ranges: fc.array(rangeArbitrary, { minLength: 1, maxLength: 8 }),
  /** Which batches are dropped between the reads. */
  drops: fc.array(fc.array(fc.nat(60), { maxLength: 30 }), { minLength: 1, maxLength: 3 }),
});
type History = typeof historyArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

async function createLedger(blocks: History["blocks"]) {
  const chain = new MemoryChain({ clock: new VirtualClock() });
  for (const name of names) chain.open(name, `0x${"5e".repeat(20)}`);
  for (const batches of blocks) {
    const encoded = batches.map(({ name, contents }) => {
      const events = encodeEvents(contents.map((content) => ({ content, extensions: [] })));
      return { address: topicAddress(name), count: contents.length, events };
    });
    chain.publish(encoded);
  }
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain, isFinal: true });
  await ledger.start();
  const read = Array.from({ length: chain.head + 1 }, (_, number) => ledger.readBlock(number, unaborted));
  const found = (await Promise.all(read)).flatMap((block) => block ?? []);
  return { ledger, indexed: indexBlocks(found, new Map()) };
}

async function answersOf(store: Store, ranges: readonly BatchRange[], sequences: number) {
  const pages = [];
  for (const range of ranges) pages.push(await store.readBatches(defaultGroupId, range));
  const found = [];
  for (const topic of names) {
    for (let sequence = 1; sequence <= sequences; sequence += 1) {
      found.push(await store.findBatch(defaultGroupId, { topic, sequence }));
    }
  }
  return { pages, found };
}

async function readTheSame(kept: Store, { blocks, ranges: places, drops }: History): Promise<void> {
  const { ledger, indexed } = await createLedger(blocks);
  const options = {
    ledgers: [ledger],
    store: kept,
    clock: new VirtualClock(),
    metrics: noMetrics,
    logger: silentLogger,
  };
  const damage = { ...options, indexRepair: new IndexRepair(options), troubles: new Troubles() };
  await kept.start();
  await kept.applyBlocks(defaultGroupId, indexed, { isFinal: true });
  const ranges = places.map(({ after, upTo, ...rest }) => {
    return { ...rest, after: toPosition(after.block, after.index), upTo: toPosition(upTo.block, upTo.index) };
  });
  const batches = indexed.flatMap((block) => block.batches);
  const before = await answersOf(kept, ranges, 10);
  for (const drop of drops) {
    const chosen = batches.filter((_, index) => drop.includes(index));
    await kept.dropEvents(defaultGroupId, chosen);
    const [first] = chosen;
    if (first !== undefined) {
      const raw = await kept.findBatch(defaultGroupId, { topic: first.topic, sequence: first.firstSequence });
      expect(raw?.events).toHaveLength(0);
    }
    // The first round begins with no batches in memory, the second with those of the first.
    const { store } = createReads(kept, damage);
    for (let times = 0; times < 2; times += 1) expect(await answersOf(store, ranges, 10)).toEqual(before);
  }
  await kept.stop();
}

test("in memory and in SQLite, every read gives the same bytes before and after any batches are dropped", async () => {
  await fc.assert(
    fc.asyncProperty(historyArbitrary, async (history) => {
      await readTheSame(createMemoryStore(), history);
      await readTheSame(createSqlStore({ file: await migratedFile() }), history);
    }),
    { numRuns: 40 },
  );
});

test.runIf(hasPostgres)("in PostgreSQL, dropping batches changes no byte of any read", async () => {
  const server = await startPostgres();
  try {
    await fc.assert(
      fc.asyncProperty(historyArbitrary, async (history) => {
        await readTheSame(createPostgresStore({ url: await server.createSchema(), connectionsMax: 2 }), history);
      }),
      { numRuns: 12 },
    );
  } finally {
    await server.remove();
  }
});
