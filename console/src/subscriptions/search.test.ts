import { expect, test } from "vitest";
import { describeSearch, readSearch, toTarget } from "./search.ts";

test.each([
  ["", { all: true }, "all subscriptions"],
  ["state=paused", { state: "paused" }, "subscriptions: paused"],
  [
    "prefix=a/&host=h:1&lagMin=0",
    { prefix: "a/", host: "h:1", lagMin: 0 },
    "subscriptions: topic begins with a/, receiver at h:1, at least 0 waiting",
  ],
])("reads the search %j as the target %j", (text, target, words) => {
  const search = readSearch(new URLSearchParams(text));
  expect(toTarget(search)).toEqual(target);
  expect(describeSearch(search)).toBe(words);
});
