import { expect, test } from "vitest";
import type { PushedBlock } from "./pushed-block.ts";
import { PushedBlocks } from "./pushed-blocks.ts";

function block(number: number, dataBytes = 10): PushedBlock {
  const hash = Buffer.alloc(32, number);
  const header = {
    number: BigInt(number),
    parentHash: Buffer.alloc(32, number - 1),
    timestamp: 5n,
    baseFeePerGas: 7n,
    gasLimit: 1n << 30n,
  };
  const log = { address: Buffer.alloc(20, 0xab), topics: [hash], data: Buffer.alloc(dataBytes, number) };
  return { hash, header, transactions: [{ hash, firstLogIndex: 3, logs: [log, log] }] };
}

function numbers(blocks: PushedBlocks, from: number, to: number): readonly number[] | undefined {
  return blocks.take({ from, to })?.map(({ header }) => header.number);
}

test("gives each block once, with its logs as an endpoint names them", () => {
  const blocks = new PushedBlocks();
  expect(blocks.add(block(5))).toMatchObject({ number: 5, timestamp: 5_000, hash: `0x${"05".repeat(32)}` });
  const [first] = blocks.take({ from: 5, to: 9 }) ?? [];
  expect(first?.logs.map(({ logIndex }) => logIndex)).toEqual([3, 4]);
  expect(first?.logs[0]).toMatchObject({
    address: `0x${"ab".repeat(20)}`,
    topics: [first?.header.hash],
    blockNumber: 5,
  });
  expect(blocks.take({ from: 5, to: 9 })).toBeUndefined();
});

test("returns consecutive blocks from the requested one, and nothing if that one is missing", () => {
  const blocks = new PushedBlocks();
  for (const number of [5, 6, 7, 8]) blocks.add(block(number));
  expect(numbers(blocks, 5, 6)).toEqual([5, 6]);
  expect(numbers(blocks, 6, 7)).toBeUndefined();
  expect(numbers(blocks, 8, 8)).toEqual([8]);
});

test("keeps up to 64 blocks and 64 MiB for a slow reader, and always the newest block", () => {
  const blocks = new PushedBlocks();
  for (let number = 1; number <= 100; number += 1) blocks.add(block(number));
  expect(numbers(blocks, 36, 100)).toBeUndefined();
  for (let number = 1; number <= 100; number += 1) blocks.add(block(number));
  expect(numbers(blocks, 37, 100)).toHaveLength(64);
  for (const number of [101, 102, 103]) blocks.add(block(number, 20_000_000));
  expect(numbers(blocks, 102, 103)).toBeUndefined();
  blocks.add(block(104, 40_000_000));
  expect(numbers(blocks, 104, 104)).toEqual([104]);
});
