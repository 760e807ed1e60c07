import { toHex } from "@stele/eth/node";
import fc from "fast-check";
import { expect, it } from "vitest";
import { readCommittedReceipt } from "./committed-receipt.ts";
import { encodeReceipt, type Receipt } from "./receipt.ts";

/** Words with few possible values, so that logs often repeat a word or differ in one byte of it. */
function wordOf(length: number): fc.Arbitrary<Uint8Array> {
  return fc
    .record({ fill: fc.constantFrom(0, 1), at: fc.nat({ max: length - 1 }), byte: fc.constantFrom(0, 1, 0xff) })
    .map(({ fill, at, byte }) => new Uint8Array(length).fill(fill).fill(byte, at, at + 1));
}

const log = fc.record({
  address: wordOf(20),
  topics: fc.array(wordOf(32), { maxLength: 4 }),
  data: fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.uint8Array({ minLength: 50, maxLength: 300 })),
});

it("readCommittedReceipt returns the status and the logs that encodeReceipt wrote", () => {
  const receipts = fc.record({ isSuccess: fc.boolean(), logs: fc.array(log, { maxLength: 12 }) });
  fc.assert(
    fc.property(receipts, fc.constantFrom(0, 1, 2), fc.bigInt(0n, 2n ** 40n), ({ isSuccess, logs }, type, gas) => {
      const rest = { gasUsed: gas, cumulativeGasUsed: gas, effectiveGasPrice: 7n, firstLogIndex: 0 };
      const receipt: Receipt = { isSuccess, logs, ...rest };
      const read = readCommittedReceipt(Buffer.from(encodeReceipt(receipt, type)));
      expect({ ...read, logs: read.logs.map((one) => ({ ...one, data: toHex(one.data) })) }).toEqual({
        isSuccess,
        logs: logs.map(({ address, topics, data }) => ({
          address: toHex(address),
          topics: topics.map(toHex),
          data: toHex(data),
        })),
      });
    }),
  );
});
