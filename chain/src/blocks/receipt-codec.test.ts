import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { CopiedBytes } from "./log.ts";
import { decodeStoredReceipt, encodeStoredReceipt } from "./receipt-codec.ts";

const sender = new Uint8Array(20).fill(7);

function store(data: Uint8Array, raw: Uint8Array, copied?: CopiedBytes) {
  const topics = [new Uint8Array(32).fill(2)];
  const log = { address: new Uint8Array(20).fill(1), topics, data, ...(copied && { copied }) };
  const receipt = {
    isSuccess: true,
    gasUsed: 21_000n,
    cumulativeGasUsed: 42_000n,
    effectiveGasPrice: 7n,
    firstLogIndex: 3,
    logs: [log, { ...log, topics: [] }],
  };
  const encoded = encodeStoredReceipt(receipt, { sender, raw });
  return { receipt, encoded, decoded: decodeStoredReceipt(encoded, raw) };
}

function toHexLogs(logs: readonly { readonly data: Uint8Array }[]): string[] {
  return logs.map(({ data }) => Buffer.from(data).toString("hex"));
}

describe("a stored receipt", () => {
  const content = randomBytes(100_000);
  it.each([
    ["all of that data", content, content],
    ["all of that data between other bytes", content, Buffer.concat([randomBytes(300), content, randomBytes(67)])],
    [
      "that data without its head and tail",
      Buffer.concat([randomBytes(96), content, Buffer.alloc(31)]),
      Buffer.concat([randomBytes(9), content]),
    ],
    [
      "that data without its length word",
      Buffer.concat([Buffer.alloc(31), Uint8Array.of(9), content]),
      Buffer.concat([content, Buffer.alloc(3)]),
    ],
  ])("a receipt stores log data once if the transaction contains %s", (_name, data, raw) => {
    const { receipt, encoded, decoded } = store(data, raw);
    expect(encoded.length).toBeLessThan(600);
    expect(toHexLogs(decoded.logs)).toEqual(toHexLogs(receipt.logs));
    expect(decoded).toMatchObject({ cumulativeGasUsed: 42_000n, isSuccess: true });
  });

  it("a receipt stores the bytes of short log data only once if their place in the transaction is known", () => {
    const memory = Buffer.concat([randomBytes(40), randomBytes(100), randomBytes(40)]);
    const raw = memory.subarray(10);
    const original = { buffer: memory.buffer, byteOffset: memory.byteOffset + 40 };
    const data = Buffer.concat([randomBytes(30), memory.subarray(40, 120), Buffer.alloc(7)]);
    const { receipt, encoded, decoded } = store(data, raw, { dataOffset: 30, length: 80, ...original });
    expect(encoded.length).toBeLessThan(store(data, raw).encoded.length);
    expect(toHexLogs(decoded.logs)).toEqual(toHexLogs(receipt.logs));
  });

  it.each([
    ["in other memory", Buffer.from(randomBytes(200)), 0],
    ["before the transaction", undefined, -5],
    ["beyond the end of the transaction", undefined, 150],
  ])("a receipt stores log data in full if the data is a copy of bytes %s", (_name, other, at) => {
    const memory = randomBytes(300);
    const raw = memory.subarray(50, 250);
    const { buffer, byteOffset } = other ?? raw;
    const data = randomBytes(100);
    const { decoded } = store(data, raw, { dataOffset: 0, length: 100, buffer, byteOffset: byteOffset + at });
    expect(toHexLogs(decoded.logs)).toEqual(toHexLogs([{ data }, { data }]));
  });

  it.each([
    ["empty", Buffer.alloc(0)],
    ["short", randomBytes(100)],
    ["not from the transaction", randomBytes(5_000)],
    ["all zeros", Buffer.alloc(5_000)],
  ])("a stored receipt returns log data that is %s", (_name, data) => {
    const { receipt, decoded } = store(data, Buffer.concat([randomBytes(50), Buffer.alloc(2_000), randomBytes(50)]));
    expect(toHexLogs(decoded.logs)).toEqual(toHexLogs(receipt.logs));
  });
});
