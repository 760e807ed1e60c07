import { expect, it } from "vitest";
import { LazyMap, LazySet } from "./lazy-collections.ts";

it("a lazy map behaves as a Map, before and after its first entry", () => {
  const map = new LazyMap<string, number>();
  expect([map.size, map.get("a"), map.has("a"), map.delete("a"), [...map], [...map.keys()], [...map.values()]]).toEqual(
    [0, undefined, false, false, [], [], []],
  );
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  expect([map.size, map.get("a"), map.has("b"), [...map], [...map.keys()], [...map.values()]]).toEqual([
    2,
    3,
    true,
    [
      ["a", 3],
      ["b", 2],
    ],
    ["a", "b"],
    [3, 2],
  ]);
  expect([map.delete("a"), map.delete("a"), [...map]]).toEqual([true, false, [["b", 2]]]);
  map.clear();
  expect([map.size, [...map]]).toEqual([0, []]);
});

it("entries may be deleted and added while they are visited, as in a Map", () => {
  const map = new LazyMap<number, number>();
  map.set(1, 1);
  const seen: number[] = [];
  for (const [key] of map) {
    seen.push(key);
    map.delete(key);
    if (key < 3) map.set(key + 1, key);
  }
  expect(seen).toEqual([1, 2, 3]);
});

it("a lazy set behaves as a Set", () => {
  const set = new LazySet(["a", "b", "a"]);
  expect([set.size, set.has("a"), [...set]]).toEqual([2, true, ["a", "b"]]);
  expect([set.delete("a"), set.delete("a"), set.size]).toEqual([true, false, 1]);
  set.add("c");
  set.clear();
  expect([set.size, set.has("c"), [...set]]).toEqual([0, false, []]);
});
