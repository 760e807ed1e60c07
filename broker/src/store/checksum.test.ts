import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Checksum, checksumOf, type Scalar } from "./checksum.ts";

function crcOfJson(values: readonly unknown[]): number {
  return crc32(JSON.stringify(values));
}

const scalar = fc.oneof(
  fc.string({ unit: "grapheme-ascii" }),
  fc.string({ unit: "binary" }),
  fc.maxSafeNat(),
  fc.nat(),
  fc.double(),
  fc.constant(null),
);

it("is the CRC-32 of the values' JSON", () => {
  fc.assert(
    fc.property(fc.array(scalar), (values) => {
      expect(checksumOf(values)).toBe(crcOfJson(values));
    }),
  );
});

it.each<[string, readonly Scalar[]]>([
  ["no value", []],
  ["an empty text", [""]],
  ["quotes and backslashes", ['"', "\\", 'a"b\\c']],
  ["control characters and DEL", ["\u0000", "\n", "\u001f", "\u007f"]],
  ["other alphabets, and half of a surrogate pair", ["ü", "日本", "😀", "\ud83d"]],
  ["the limits of integers", [0, -0, 9, 10, 2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER, 2 ** 53, -1]],
  ["NaN, infinity, an exponent and a fraction", [Number.NaN, Number.POSITIVE_INFINITY, 1e21, 1.5]],
])("is the CRC-32 of the JSON of %s", (_, values) => {
  expect(checksumOf(values)).toBe(crcOfJson(values));
});

it("encodes values that only a damaged row can hold as JSON.stringify does", () => {
  const values = [undefined, true, new Uint8Array([1, 2])];
  const checksum = new Checksum();
  for (const value of values) checksum.add(value);
  expect(checksum.end()).toBe(crcOfJson(values));
});
