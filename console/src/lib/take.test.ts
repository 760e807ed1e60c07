import { expect, test } from "vitest";
import { take } from "./take.ts";

async function* three(): AsyncGenerator<number> {
  yield* [0, 1, 2];
}

test.each([
  [0, { items: [], hasMore: true }],
  [2, { items: [0, 1], hasMore: true }],
  [3, { items: [0, 1, 2], hasMore: false }],
])("takes up to %i of three items, and says whether there are more", async (max, taken) => {
  expect(await take(three(), max)).toEqual(taken);
});
