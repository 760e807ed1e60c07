import { RLP } from "@ethereumjs/rlp";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toHex } from "../bytes.ts";
import { MalformedError } from "../malformed-error.ts";
import { decodeRlp } from "./decode-rlp.ts";
import { encodeRlp, type RlpItem } from "./encode-rlp.ts";

const bytes = fc.oneof(fc.uint8Array({ maxLength: 70 }), fc.uint8Array({ minLength: 250, maxLength: 300 }));
const { item } = fc.letrec<{ item: RlpItem }>((tie) => ({
  item: fc.oneof({ maxDepth: 4 }, bytes, fc.array(tie("item"), { maxLength: 6 })),
}));

function toComparable(value: RlpItem): unknown {
  return value instanceof Uint8Array ? toHex(value) : value.map(toComparable);
}

describe("RLP", () => {
  it("encodeRlp encodes like @ethereumjs/rlp, and decodeRlp returns the same value", () => {
    fc.assert(
      fc.property(item, (value) => {
        const encoded = encodeRlp(value);
        expect(toHex(encoded)).toBe(toHex(RLP.encode(value as Uint8Array[]))); // The type of `encode` asks for mutable lists.
        expect(toComparable(decodeRlp(encoded))).toEqual(toComparable(value));
      }),
    );
  });

  it("decodeRlp refuses random bytes or returns a value that encodes to the same bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (input) => {
        let decoded: RlpItem | undefined;
        try {
          decoded = decodeRlp(input);
        } catch {
          decoded = undefined;
        }
        if (decoded !== undefined) expect(toHex(encodeRlp(decoded))).toBe(toHex(input));
      }),
      { numRuns: 1_000 },
    );
  });

  it("encodeRlp puts the prefix before the item", () => {
    expect(toHex(encodeRlp([Uint8Array.of(1)], Uint8Array.of(2)))).toBe("0x02c101");
  });

  it.each([
    ["a single byte with a header", "8105"],
    ["bytes after the value", "0505"],
    ["a value longer than the input", "8201"],
    ["a long header for a short value", "b80100"],
    ["a length with leading zeros", `b90038${"00".repeat(56)}`],
    ["empty input", ""],
    ["lists that are nested too deep", "c1".repeat(100)],
  ])("decodeRlp refuses %s", (_name, hex) => {
    expect(() => decodeRlp(Buffer.from(hex, "hex"))).toThrow(MalformedError);
  });
});
