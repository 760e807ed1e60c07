import { expect, it } from "vitest";
import { groupBy } from "./group-by.ts";

it("groups items by their key, in the order of the items", () => {
  const groups = groupBy([3, 1, 4, 1, 5], (number) => number % 2);
  expect([...groups]).toEqual([
    [1, [3, 1, 1, 5]],
    [0, [4]],
  ]);
});
