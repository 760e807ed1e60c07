import { afterEach, expect, it } from "vitest";
import { encodeEvents } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { alpha, blockOf, topicOf } from "../../ports/store-examples.contract.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { EventIds } from "../event-ids.ts";
import type { Groups } from "../group.ts";
import { BlockFinder } from "./block-finder.ts";

let engine: TestEngine | undefined;
afterEach(() => engine?.stop());

const slices = { pause: () => Promise.resolve() };

/** Creates a finder, and writes the blocks directly to its index: a chain would take too long to make so many. */
async function finderOver(blocks: readonly ReturnType<typeof blockOf>[]): Promise<BlockFinder> {
  const store = createMemoryStore();
  await store.applyBlocks(defaultGroupId, blocks, { isFinal: true });
  const group = { id: defaultGroupId, findHead: () => store.findHead(defaultGroupId) };
  const groups = { getAny: () => group } as unknown as Groups; // The finder uses only this method.
  return new BlockFinder({ storeWithoutDropped: store, groups, eventIds: new EventIds() });
}

/** Batches of one event each, in one block. */
function batchesOf(block: number, { from, count }: { readonly from: number; readonly count: number }) {
  const events = encodeEvents([{ content: Buffer.from("x"), extensions: [] }]);
  return Array.from(
    { length: count },
    (_, index): EventBatch => ({
      topic: alpha,
      firstSequence: from + index,
      firstPosition: toPosition(block, index),
      count: 1,
      blockNumber: block,
      transactionHash: blockOf(block).hash,
      logIndex: index,
      publisher: topicOf(alpha).sender,
      events,
    }),
  );
}

it("lists the blocks that have events, newest first, page by page", async () => {
  engine = await TestEngine.start();
  const { broker, chain } = engine;
  await broker.open({ topic: "a", groupId: undefined });
  await engine.publishMany("a", 2);
  for (let blocks = 0; blocks < 300; blocks += 1) chain.sealEmpty();
  await engine.clock.advance(1_000);
  await engine.publishMany("a", 1);
  const list = (after?: string) => broker.operator.listBlocks(testCaller, undefined, { after, limit: 1 });
  const seen = [];
  for (let page = await list(); ; page = await list(page.next)) {
    seen.push(...page.items);
    if (page.next === undefined) break;
  }
  const sequences = seen.flatMap(({ batches }) => batches.map(({ batch }) => batch.firstSequence));
  expect(sequences[0]).toBe(3);
  expect(sequences.at(-1)).toBe(1);
  expect(seen.map(({ block }) => block)).toEqual(seen.map(({ block }) => block).toSorted((one, other) => other - one));
  expect(seen[0]?.batches[0]?.firstEventId).toMatch(/^[0-9a-f]{8}-3-\d+$/);
  await expect(list("x")).rejects.toMatchObject({ code: 200001 });
});

it("cuts a block of 700 batches after 500, and leaves out no other block", async () => {
  const finder = await finderOver([
    blockOf(1, { opened: [topicOf(alpha)], batches: batchesOf(1, { from: 1, count: 1 }) }),
    blockOf(2, { batches: batchesOf(2, { from: 2, count: 700 }) }),
    blockOf(3, { batches: batchesOf(3, { from: 702, count: 499 }) }),
  ]);
  const { items, next } = await finder.list(undefined, { after: undefined, limit: 9, slices });
  expect(next).toBeUndefined();
  expect(items.map(({ block, isCut, batches }) => [block, isCut, batches.length])).toEqual([
    [3, false, 499],
    [2, true, 500],
    [1, false, 1],
  ]);
});

it("shows a block whole that has as many batches or bytes as one read may have", async () => {
  const [long] = batchesOf(3, { from: 502, count: 1 });
  const events = encodeEvents([{ content: Buffer.alloc(2 ** 20), extensions: [] }]);
  const finder = await finderOver([
    blockOf(1, { opened: [topicOf(alpha)], batches: batchesOf(1, { from: 1, count: 1 }) }),
    blockOf(2, { batches: batchesOf(2, { from: 2, count: 500 }) }),
    blockOf(3, { batches: long === undefined ? [] : [{ ...long, events }] }),
  ]);
  const { items } = await finder.list(undefined, { after: undefined, limit: 9, slices });
  expect(items.map(({ block, isCut, batches }) => [block, isCut, batches.length])).toEqual([
    [3, false, 1],
    [2, false, 500],
    [1, false, 1],
  ]);
});

it("finds an event below a million empty blocks in one call", async () => {
  const finder = await finderOver([
    blockOf(1, { opened: [topicOf(alpha)], batches: batchesOf(1, { from: 1, count: 1 }) }),
    blockOf(1_000_000),
  ]);
  const { items } = await finder.list(undefined, { after: undefined, limit: 9, slices });
  expect(items.map(({ block }) => block)).toEqual([1]);
});

it.each(["x", "-1", "8589934593", "9999999999", "99999999999"])("refuses the cursor %s", async (after) => {
  const listed = (await finderOver([])).list(undefined, { after, limit: 1, slices });
  await expect(listed).rejects.toMatchObject({ code: 200001 });
});
