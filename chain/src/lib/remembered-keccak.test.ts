import { keccak256 } from "@stele/eth/node";
import { describe, expect, it } from "vitest";
import { REMEMBERED_HASHES_MAX } from "../limits.ts";
import { rememberedKeccak, rememberedKeccakOf } from "./remembered-keccak.ts";

const inputOf = (number: number): Buffer => Buffer.from(`input ${number}`);

describe("rememberedKeccak", () => {
  it("rememberedKeccak returns the right hash for inputs repeated after more inputs than it remembers", () => {
    const often = inputOf(-1);
    const kept = rememberedKeccak(often);
    for (let number = 0; number < 2 * REMEMBERED_HASHES_MAX; number += 1) {
      const hash = rememberedKeccak(inputOf(number));
      if (number % 1_000 !== 0) continue;
      expect(hash).toEqual(Buffer.from(keccak256(inputOf(number))));
      expect(rememberedKeccak(often)).toEqual(kept);
      expect(rememberedKeccakOf(`input ${number}`)).toEqual(hash);
    }
    expect(kept).toEqual(Buffer.from(keccak256(often)));
    for (const number of [0, 1, REMEMBERED_HASHES_MAX]) {
      expect(rememberedKeccakOf(`input ${number}`)).toEqual(Buffer.from(keccak256(inputOf(number))));
    }
  });

  it("rememberedKeccak keeps 1,000 hashes in at most two buffers", () => {
    const memories = new Set(Array.from({ length: 1_000 }, (_, number) => rememberedKeccak(inputOf(number)).buffer));
    expect(memories.size).toBeLessThanOrEqual(2);
  });

  it("rememberedKeccak hashes an input that is too long to remember", () => {
    const long = Buffer.alloc(65, 1);
    expect(rememberedKeccak(long)).toEqual(keccak256(long));
  });
});
