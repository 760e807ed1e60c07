import { keccak256 as reference } from "viem";
import { expect, it } from "vitest";
import { toHex } from "../bytes.ts";
import { keccak256 } from "./keccak.ts";

// Lengths around the 136 bytes that the sponge absorbs at once.
it.each([0, 1, 135, 136, 137, 272, 1_000, 300_000])(
  "keccak256 hashes %i bytes like viem, in one part and in two",
  (length) => {
    const bytes = Uint8Array.from({ length }, (_, index) => index % 251);
    const expected = reference(bytes);
    const cut = Math.floor(length / 3);
    expect(toHex(keccak256(bytes))).toBe(expected);
    expect(toHex(keccak256(bytes.subarray(0, cut), bytes.subarray(cut)))).toBe(expected);
  },
);
