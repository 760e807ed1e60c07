import { expect, it } from "vitest";
import { before, endOfBlock, type Position, positionZero, toPosition } from "../domain/position.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { Store, TopicSize } from "./store.ts";
import { alpha, batchOf, beta, blockOf, group, otherGroup, topicOf } from "./store-examples.contract.ts";

const sizes = [10, 20, 30, 40];
const head = endOfBlock(10);
const nothing: TopicSize = { batchCount: 0, byteCount: 0, first: undefined };

/** Blocks 2 to 5 each have a batch of alpha with two events, and then a batch of beta. */
const blocks = [
  blockOf(1, { opened: [topicOf(alpha, 1), topicOf(beta, 2)] }),
  ...sizes.map((size, index) => {
    const place = { block: index + 2, sequence: 1 + 2 * index, count: 2, events: new Uint8Array(size) };
    const other = { block: index + 2, index: 2, sequence: 1 + index, count: 1, events: new Uint8Array(1_000) };
    return blockOf(index + 2, { batches: [batchOf(alpha, place), batchOf(beta, other)] });
  }),
];

/** The store's guarantees about the sizes of topics. */
export function testTopicSizes(store: () => Store): void {
  it.each<[string, [upTo: Position, batchesMax: number], TopicSize]>([
    ["all", [head, 10], { batchCount: 4, byteCount: 100, first: toPosition(2, 0) }],
    ["the newest", [head, 2], { batchCount: 2, byteCount: 70, first: toPosition(4, 0) }],
    ["up to a block", [endOfBlock(3), 10], { batchCount: 2, byteCount: 30, first: toPosition(2, 0) }],
    [
      "up to the last event of a batch",
      [toPosition(3, 1), 1],
      { batchCount: 1, byteCount: 20, first: toPosition(3, 0) },
    ],
    ["up to inside a batch", [toPosition(3, 0), 10], { batchCount: 1, byteCount: 10, first: toPosition(2, 0) }],
    ["up to before the first event", [before(toPosition(2, 0)), 10], nothing],
    ["up to position zero", [positionZero, 10], nothing],
  ])("measures the batches of a topic: %s", async (_, [upTo, batchesMax], size) => {
    await store().applyBlocks(group, blocks);
    expect(await store().measureTopic(group, { topic: alpha, upTo, batchesMax })).toEqual(size);
  });

  it("measures dropped events by their original size", async () => {
    await store().applyBlocks(group, blocks);
    const range = { after: positionZero, upTo: head, topic: alpha, batchesMax: 2, bytesMax: 1_000 };
    await store().dropEvents(group, await store().readBatches(group, range));
    const size = await store().measureTopic(group, { topic: alpha, upTo: head, batchesMax: 10 });
    expect(size).toMatchObject({ batchCount: 4, byteCount: 100 });
  });

  it("measures nothing of an unknown topic or group", async () => {
    await store().applyBlocks(group, blocks);
    const range = { upTo: head, batchesMax: 10 };
    expect(await store().measureTopic(group, { ...range, topic: parseTopicName("gamma") })).toEqual(nothing);
    expect(await store().measureTopic(otherGroup, { ...range, topic: alpha })).toEqual(nothing);
  });
}
