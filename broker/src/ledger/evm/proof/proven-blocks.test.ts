import { OrderedTrie, toHex } from "@stele/eth/node";
import { expect, test, vi } from "vitest";
import type { Hash } from "../../../domain/topic.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { ProvenBlock } from "./proven-block.ts";
import { ProvenBlocks } from "./proven-blocks.ts";

const registry = "0x00000000000000000000000000000000000000aa";

function createBlock(headerBytes: number, hash: Hash = "0x01"): ProvenBlock {
  const header = new Uint8Array(headerBytes);
  const block = { transactions: [], receiptsRoot: toHex(new OrderedTrie([]).root), hash };
  return new ProvenBlock(1, { block, header, receipts: [], registry });
}

test("reads a block once for concurrent calls and for calls soon after", async () => {
  const answer = createDeferred<ProvenBlock>();
  const read: number[] = [];
  const blocks = new ProvenBlocks((number) => {
    read.push(number);
    return answer.promise;
  });
  const asked = [blocks.get(7), blocks.get(7)];
  answer.resolve(createBlock(10));
  const [first, second] = await Promise.all(asked);
  expect([await blocks.get(7), second]).toEqual([first, first]);
  expect(read).toEqual([7]);
});

test("reads a block again if the kept one has another hash than the wanted one, as after a reorg", async () => {
  let now: Hash = "0x01";
  const blocks = new ProvenBlocks(async () => createBlock(10, now));
  expect((await blocks.get(7, "0x01")).hash).toBe("0x01");
  expect((await blocks.get(7, "0x02")).hash).toBe("0x01");
  now = "0x02";
  expect((await blocks.get(7, "0x02")).hash).toBe("0x02");
});

test("reads a block again after its read failed", async () => {
  let count = 0;
  const blocks = new ProvenBlocks(async () => {
    count += 1;
    if (count === 1) throw new Error("lost");
    return createBlock(10);
  });
  await expect(blocks.get(7)).rejects.toThrow("lost");
  await blocks.get(7);
  expect(count).toBe(2);
});

test("reads each block once for 100 proofs of three blocks, one after the other and at once", async () => {
  const read: number[] = [];
  const blocks = new ProvenBlocks(async (number) => {
    read.push(number);
    return createBlock(10);
  });
  const places = Array.from({ length: 100 }, (_, index) => index % 3);
  await Promise.all(places.map((number) => blocks.get(number + 3)));
  for (const number of places) await blocks.get(number);
  expect(read).toEqual([3, 4, 5, 0, 1, 2]);
});

test("drops the oldest block once all kept ones exceed 16 MiB", async () => {
  const read: number[] = [];
  const blocks = new ProvenBlocks(async (number) => {
    read.push(number);
    return createBlock(3 * 2 ** 20);
  });
  for (const number of [1, 2, 3, 3, 2, 1]) await blocks.get(number);
  expect(read).toEqual([1, 2, 3, 1]);
});

test("drops a block after 5 s, although no other block is read", async () => {
  vi.useFakeTimers();
  try {
    let count = 0;
    const blocks = new ProvenBlocks(async () => {
      count += 1;
      return createBlock(10);
    });
    await blocks.get(7);
    vi.advanceTimersByTime(4_999);
    await blocks.get(7);
    expect([count, vi.getTimerCount()]).toEqual([1, 1]);
    vi.advanceTimersByTime(1);
    expect(vi.getTimerCount()).toBe(0);
    await blocks.get(7);
    expect(count).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});
