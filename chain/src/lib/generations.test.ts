import { expect, it } from "vitest";
import { Generations } from "./generations.ts";

it("Generations keeps used entries, evicts the others, and exceeds its weight by one entry at most", () => {
  const cache = new Generations<number>(100);
  for (let key = 0; key < 1_000; key += 1) {
    cache.set(`key ${key}`, key);
    expect(cache.get("key 0")).toBe(0);
  }
  const kept = Array.from({ length: 1_000 }, (_, key) => cache.get(`key ${key}`)).filter(
    (value) => value !== undefined,
  );
  expect(kept.length).toBeLessThanOrEqual(101);
  expect(cache.get("key 999")).toBe(999);
});

it("Generations returns the newest value, even of an entry close to eviction, and none after deletion", () => {
  const cache = new Generations<number>(4);
  cache.set("a", 1);
  for (const other of ["b", "c"]) cache.set(other, 0);
  cache.set("a", 2);
  expect(cache.get("a")).toBe(2);
  cache.delete("a");
  expect(cache.get("a")).toBeUndefined();
});

it("Generations counts an entry once, however often it is replaced", () => {
  const cache = new Generations<number>(8);
  cache.set("kept", 0);
  for (let round = 0; round < 100; round += 1) for (const key of ["a", "b"]) cache.set(key, round);
  expect(cache.get("kept")).toBe(0);
});
