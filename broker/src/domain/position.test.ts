import { describe, expect, it } from "vitest";
import {
  advance,
  before,
  beforeBlock,
  blockNumberMax,
  blockOf,
  endOfBlock,
  eventsPerBlockMax,
  fromStored,
  positionZero,
  toPosition,
} from "./position.ts";

describe("position", () => {
  it("is block number × 2^20 + index, a safe integer up to the last block", () => {
    expect(toPosition(3, 5)).toBe(3 * 2 ** 20 + 5);
    expect(Number.isSafeInteger(toPosition(blockNumberMax, eventsPerBlockMax - 1))).toBe(true);
  });

  it("orders by block, then by index", () => {
    expect(endOfBlock(3)).toBeLessThan(toPosition(4, 0));
    expect(advance(toPosition(3, 5), 2)).toBe(toPosition(3, 7));
  });

  it("steps back over a block boundary", () => {
    expect(before(toPosition(4, 0))).toBe(endOfBlock(3));
  });

  it("before a block is the end of the previous block; before block 0, the position before every event", () => {
    expect(beforeBlock(4)).toBe(endOfBlock(3));
    expect(beforeBlock(0)).toBe(positionZero);
  });

  it("contains its block number, and is the same after it is read from its stored form", () => {
    const position = toPosition(blockNumberMax, 17);
    expect(blockOf(position)).toBe(blockNumberMax);
    expect(fromStored(position)).toBe(position);
  });

  it.each([
    [-1, 0],
    [0, -1],
    [0, eventsPerBlockMax],
    [blockNumberMax + 1, 0],
    [0.5, 0],
    [0, Number.NaN],
  ])("refuses block %d, index %d", (block, index) => {
    expect(() => toPosition(block, index)).toThrow(RangeError);
  });

  it("refuses to advance out of its block, or to step back before the first position", () => {
    expect(() => advance(endOfBlock(3), 1)).toThrow(RangeError);
    expect(() => before(positionZero)).toThrow(RangeError);
  });
});
