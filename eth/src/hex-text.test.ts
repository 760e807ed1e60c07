import { expect, test } from "vitest";
import { findBytes, toHexText } from "./hex-text.ts";

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);

test.each([
  ["no bytes", new Uint8Array(0)],
  ["every byte", everyByte],
  ["a part of a longer array", everyByte.subarray(3, 40)],
  ["a megabyte", new Uint8Array(2 ** 20).fill(0xa9)],
])("toHexText writes %s as Buffer does, and findBytes reads it back", (_, bytes) => {
  const text = toHexText(bytes);
  expect(text === `0x${Buffer.from(bytes).toString("hex")}`).toBe(true);
  expect(Buffer.compare(findBytes(text) ?? new Uint8Array(1), bytes)).toBe(0);
});

test.each(["", "00", "0x0", "0x0A", "0xg0", "0X00", "0x\u0161\u0161", " 0x00"])("findBytes refuses %j", (text) => {
  expect(findBytes(text)).toBeUndefined();
});

test("toHexText makes no object per byte, so that the garbage collector has nothing to do", () => {
  const bytes = new Uint8Array(2 ** 22);
  const before = process.memoryUsage().heapUsed;
  const text = toHexText(bytes);
  const added = process.memoryUsage().heapUsed - before;
  expect(added).toBeLessThan(4 * text.length);
});
