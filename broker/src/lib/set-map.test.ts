import { expect, test } from "vitest";
import { SetMap } from "./set-map.ts";

test("a key exists as long as it has a value", () => {
  const map = new SetMap<string, number>();
  map.add("a", 1);
  map.add("a", 2);
  map.add("b", 3);
  map.delete("c", 1);
  expect([...map.keys()].map((key) => [key, ...map.get(key)])).toEqual([
    ["a", 1, 2],
    ["b", 3],
  ]);
  map.delete("b", 3);
  expect([...map.keys()]).toEqual(["a"]);
  expect([...map.take("a")]).toEqual([1, 2]);
  expect([...map.get("a"), ...map.keys()]).toEqual([]);
});
