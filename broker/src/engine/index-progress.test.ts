import { expect, it } from "vitest";
import { reorganisationBlocksMax as blocksMax } from "../ports/store.ts";
import { IndexProgress } from "./index-progress.ts";

it.each<readonly [readonly number[], readonly number[]]>([
  [
    [1, 2, 3],
    [1, 2, 3],
  ],
  [
    [1, 2, 3, blocksMax + 2],
    [2, 3, blocksMax + 2],
  ],
  [
    [1, 2, 9_000],
    [2, 9_000],
  ],
  [
    [5, 5_000, 9_000],
    [5, 5_000, 9_000],
  ],
  [
    [1, 2, 3, 4_100, 9_000],
    [4_100, 9_000],
  ],
  [
    [7, 7, 6, 8],
    [7, 8],
  ],
])("of the newest blocks %j, remembers %j: a rollback reaches no block before them", (numbers, remembered) => {
  const progress = new IndexProgress();
  for (const number of numbers) progress.saw({ number, hash: `0x${number}` });
  expect(progress.seen.map(({ number }) => number)).toEqual(remembered);
});

it("is rebuilding until the index has every block again that was seen, although it starts again on the way", () => {
  const progress = new IndexProgress();
  progress.advanceTo(900);
  progress.rollBackTo(-1);
  progress.rebuildTo(900);
  progress.advanceTo(512);
  progress.rebuildTo(512); // Another start found the first step of the new index.
  expect(progress.isRebuilding).toBe(true);
  progress.advanceTo(900);
  expect(progress.isRebuilding).toBe(false);
  progress.rollBackTo(890);
  expect(progress.isRebuilding).toBe(false);
});
