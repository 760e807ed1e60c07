import { expect, test } from "vitest";
import { Pacer } from "./pacer.ts";

test("passes a burst of one second's worth and one more item, and then delays each item by the cost of the item before it", () => {
  const pacer = new Pacer({ perMs: 1, burstMs: 1000 });
  for (let index = 0; index < 11; index += 1) {
    expect(pacer.delayMs(0)).toBe(0);
    pacer.take(0, 100);
  }
  expect(pacer.delayMs(0)).toBe(100);
  expect(pacer.delayMs(100)).toBe(0);
});

test("passes an item larger than one second's worth, and delays the next ones by the excess", () => {
  const pacer = new Pacer({ perMs: 1, burstMs: 1000 });
  pacer.take(0, 5000);
  expect(pacer.delayMs(0)).toBe(4000);
});

test("if no burst is allowed, spaces items evenly, even after a long time without items", () => {
  const pacer = new Pacer({ perMs: 60 / 60_000, burstMs: 0 });
  for (const now of [0, 1000, 90_000]) {
    expect(pacer.delayMs(now)).toBe(0);
    pacer.take(now, 1);
    expect(pacer.delayMs(now)).toBe(1000);
  }
});
