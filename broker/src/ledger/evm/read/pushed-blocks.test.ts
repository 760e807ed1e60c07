import { type Hex, toHex } from "@stele/eth/node";
import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { publishedSignature } from "./parse-log.ts";
import type { PushedBlock, RawLog } from "./pushed-block.ts";
import { PushedBlocks } from "./pushed-blocks.ts";

const registry: Address = `0x${"ab".repeat(20)}`;
const topicAddress: Address = `0x${"cd".repeat(20)}`;

function wordOf(hex: string): Hex {
  return `0x${hex.padStart(64, "0")}`;
}

/** A batch's log that the contract `address` wrote, with `dataBytes` bytes of data. */
function published(address: Address, dataBytes: number): RawLog {
  const topics = [publishedSignature, wordOf(topicAddress.slice(2)), wordOf("7"), wordOf("ef".repeat(20))];
  return { address, topics, data: Buffer.alloc(dataBytes) };
}

function block(number: number, dataBytes = 10): PushedBlock {
  const hash = Buffer.alloc(32, number);
  const header = {
    number: BigInt(number),
    parentHash: Buffer.alloc(32, number - 1),
    timestamp: 5n,
    baseFeePerGas: 7n,
    gasLimit: 1n << 30n,
  };
  const log = published(registry, dataBytes);
  const logs = [log, published(topicAddress, 0), log];
  return { hash, header, transactions: [{ hash, firstLogIndex: 3, logs }] };
}

function numbers(blocks: PushedBlocks, from: number, to: number): readonly number[] | undefined {
  return blocks.take({ from, to })?.map(({ header }) => header.number);
}

test("returns each block once, with the registry's logs parsed as if an endpoint had sent them", () => {
  const blocks = new PushedBlocks(registry);
  expect(blocks.add(block(5))).toMatchObject({ number: 5, timestamp: 5_000, hash: `0x${"05".repeat(32)}` });
  const [first] = blocks.take({ from: 5, to: 9 }) ?? [];
  expect(first?.logs.map(({ logIndex }) => logIndex)).toEqual([3, 5]);
  expect(first?.logs[0]).toMatchObject({
    kind: "events-published",
    address: topicAddress,
    firstSequence: 7,
    sender: `0x${"ef".repeat(20)}`,
    blockNumber: 5,
    blockHash: first?.header.hash,
    transactionHash: toHex(Buffer.alloc(32, 5)),
  });
  expect(blocks.take({ from: 5, to: 9 })).toBeUndefined();
});

test("returns consecutive blocks from the requested block on, and nothing if this block is missing", () => {
  const blocks = new PushedBlocks(registry);
  for (const number of [5, 6, 7, 8]) blocks.add(block(number));
  expect(numbers(blocks, 5, 6)).toEqual([5, 6]);
  expect(numbers(blocks, 6, 7)).toBeUndefined();
  expect(numbers(blocks, 8, 8)).toEqual([8]);
});

test("keeps up to 64 blocks and 64 MiB for a slow reader, and always the newest block", () => {
  const blocks = new PushedBlocks(registry);
  for (let number = 1; number <= 100; number += 1) blocks.add(block(number));
  expect(numbers(blocks, 36, 100)).toBeUndefined();
  for (let number = 1; number <= 100; number += 1) blocks.add(block(number));
  expect(numbers(blocks, 37, 100)).toHaveLength(64);
  for (const number of [101, 102, 103]) blocks.add(block(number, 20_000_000));
  expect(numbers(blocks, 102, 103)).toBeUndefined();
  blocks.add(block(104, 40_000_000));
  expect(numbers(blocks, 104, 104)).toEqual([104]);
});
