import { expect, test } from "vitest";
import { RangeSize } from "./range-size.ts";

const small = 1000;
const big = 5_000_000;

test("the range grows to its maximum while answers are small", () => {
  const size = new RangeSize();
  for (let index = 0; index < 20; index += 1) size.onAnswer(small);
  expect(size.blocks).toBe(8192);
});

test("the range shrinks to one block while answers are big", () => {
  const size = new RangeSize();
  for (let index = 0; index < 20; index += 1) size.onAnswer(big);
  expect(size.blocks).toBe(1);
});

test("a refusal halves the range, which grows again at the sixteenth answer", () => {
  const size = new RangeSize();
  expect(size.onRefusal()).toBe(true);
  expect(size.blocks).toBe(8);
  for (let index = 0; index < 15; index += 1) size.onAnswer(small);
  expect(size.blocks).toBe(8);
  size.onAnswer(small);
  expect(size.blocks).toBe(16);
});

test("onRefusal returns false once the range is one block", () => {
  const size = new RangeSize();
  for (let index = 0; index < 4; index += 1) expect(size.onRefusal()).toBe(true);
  expect(size.onRefusal()).toBe(false);
  expect(size.blocks).toBe(1);
});
