import { type Hex, toHex } from "@stele/eth/node";
import { keccak256 as keccakOf, toRlp } from "viem";
import { describe, expect, test } from "vitest";
import { findHeader } from "./header-rlp.ts";

const word = (byte: string): Hex => `0x${byte.repeat(32)}`;
const vanity = word("00");
const validators: Hex[] = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`];
const seals: Hex[] = [`0x${"b1".repeat(65)}`, `0x${"b2".repeat(65)}`];

const block = {
  parentHash: word("01"),
  sha3Uncles: word("02"),
  miner: `0x${"03".repeat(20)}`,
  stateRoot: word("04"),
  transactionsRoot: word("05"),
  receiptsRoot: word("06"),
  logsBloom: `0x${"00".repeat(256)}`,
  difficulty: "0x1",
  number: "0x10",
  gasLimit: "0x47e7c4",
  gasUsed: "0x0",
  timestamp: "0x6391a3b8",
  extraData: "0x",
  mixHash: "0x63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365",
  nonce: "0x0000000000000000",
  baseFeePerGas: "0x7",
} as const;

/** The block's header, encoded by hand, with this extra data. */
function headerWith(extraData: Hex): Hex {
  const { parentHash, sha3Uncles, miner, stateRoot, transactionsRoot, receiptsRoot, logsBloom, mixHash, nonce } = block;
  const roots: Hex[] = [parentHash, sha3Uncles, miner, stateRoot, transactionsRoot, receiptsRoot, logsBloom];
  return toRlp([...roots, "0x01", "0x10", "0x47e7c4", "0x", "0x6391a3b8", extraData, mixHash, nonce, "0x07"]);
}

describe("a header", () => {
  test.each([
    ["plain extra data", "0x1234", "0x1234"],
    ["QBFT", toRlp([vanity, validators, [], "0x02", seals]), toRlp([vanity, validators, [], "0x", []])],
    [
      "QBFT, with a vote",
      toRlp([vanity, validators, [validators[0] ?? "0x", "0xff"], "0x", seals]),
      toRlp([vanity, validators, [validators[0] ?? "0x", "0xff"], "0x", []]),
    ],
    ["IBFT 2.0", toRlp([vanity, validators, "0x", "0x00000001", seals]), toRlp([vanity, validators, "0x"])],
  ] as const)(
    "findHeader encodes a header with the extra data that the block's hash covers: %s",
    (_, extraData, hashed) => {
      const expected = headerWith(hashed);
      const found = findHeader({ ...block, extraData, hash: keccakOf(expected) });
      expect(found === undefined ? undefined : toHex(found)).toBe(expected);
    },
  );

  test.each([
    ["another hash", { hash: word("ff") }],
    ["a missing field", { hash: keccakOf(headerWith("0x")), stateRoot: undefined }],
    ["a field that is not hex", { hash: keccakOf(headerWith("0x")), number: "16" }],
    ["no extra data", { hash: keccakOf(headerWith("0x")), extraData: null }],
  ])("findHeader returns undefined for a block with %s", (_, change) => {
    expect(findHeader({ ...block, hash: keccakOf(headerWith("0x")) })).toBeDefined();
    expect(findHeader({ ...block, ...change })).toBeUndefined();
  });
});
