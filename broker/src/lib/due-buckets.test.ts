import { expect, it } from "vitest";
import { DueBuckets } from "./due-buckets.ts";

it("takes each item that is due, and leaves the others", () => {
  const buckets = new DueBuckets<string>();
  buckets.add("early", 1_000);
  buckets.add("late", 2_000);
  buckets.add("deleted", 1_000);
  buckets.delete("deleted", 1_000);
  expect(buckets.takeDue(999)).toEqual([]);
  expect(buckets.takeDue(1_000)).toEqual(["early"]);
  expect(buckets.takeDue(2_000)).toEqual(["late"]);
  expect(buckets.takeDue(2_000)).toEqual([]);
});

it("takes 200,000 items that are due at once", () => {
  const buckets = new DueBuckets<number>();
  for (let item = 0; item < 200_000; item += 1) buckets.add(item, 0);
  expect(buckets.takeDue(0)).toHaveLength(200_000);
});
