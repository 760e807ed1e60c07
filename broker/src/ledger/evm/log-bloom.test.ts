import { bloomBits, bloomBytes, fromHex, type Hex, keccak256, setBloomBit, toHex } from "@stele/eth/node";
import { expect, test } from "vitest";
import type { Address } from "../../domain/topic.ts";
import type { Header } from "./endpoint/rpc.ts";
import { LogBloom } from "./log-bloom.ts";
import { logSignatures, publishedSignature, signatureOf } from "./read/parse-log.ts";

const registry: Address = `0x${"12".repeat(20)}`;

function headerWith(...items: readonly Hex[]): Header {
  const bloom = new Uint8Array(bloomBytes);
  for (const item of items) for (const bit of bloomBits(keccak256(fromHex(item)))) setBloomBit(bloom, bit);
  const hash: Hex = `0x${"ab".repeat(32)}`;
  const fixed = { number: 1, timestamp: 0, baseFeePerGas: undefined, gasLimit: 1, transactionsRoot: hash };
  return { ...fixed, hash, parentHash: hash, logsBloom: toHex(bloom) };
}

test("a header promises wanted logs only if its bloom has the contract and one of their signatures", () => {
  const bloom = new LogBloom(registry, logSignatures);
  const matches = (...items: readonly Hex[]): boolean => bloom.matches(headerWith(...items));
  expect(logSignatures.map((signature) => matches(registry, signature))).toEqual(logSignatures.map(() => true));
  const others = ["WritersCreated", "WriterChanged", "TopicWritersChanged"].map(signatureOf);
  expect(others.map((signature) => matches(registry, signature))).toEqual([false, false, false]);
  expect(matches(publishedSignature)).toBe(false);
  expect(bloom.mayHold(headerWith(registry, ...others))).toBe(false);
  expect(bloom.mayHold(headerWith())).toBe(true);
  expect(bloom.matches(headerWith())).toBe(false);
});
