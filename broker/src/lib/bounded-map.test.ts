import { expect, test } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

test("a map of two entries drops the one that was set longest ago", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3);
  expect([...map]).toEqual([
    ["b", 2],
    ["a", 3],
  ]);
  map.set("c", 4);
  expect([...map.keys()]).toEqual(["a", "c"]);
});
