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
    [1, 2, 3, blocksMax + 2],
  ],
  [
    [1, 2, 3, blocksMax + 3],
    [2, 3, blocksMax + 3],
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
])("after it saw blocks %j, remembers %j: no rollback reaches an earlier block", (numbers, remembered) => {
  const progress = new IndexProgress();
  for (const number of numbers) progress.saw({ number, hash: `0x${number}` });
  expect(progress.seen.map(({ number }) => number)).toEqual(remembered);
});

it("the index counts as rebuilding until it again has every block that the node saw, even if the group starts again meanwhile", () => {
  const progress = new IndexProgress();
  progress.advanceTo(900);
  progress.rollBackTo(-1);
  progress.rebuildTo(900);
  progress.advanceTo(512);
  progress.rebuildTo(512); // The group started again, and read an index that was only partly rebuilt.
  expect(progress.isRebuilding).toBe(true);
  progress.advanceTo(900);
  expect(progress.isRebuilding).toBe(false);
  progress.rollBackTo(890);
  expect(progress.isRebuilding).toBe(false);
});

it("if the chain became shorter, the rebuild ends once the index has the chain's newest block, and no rollback restarts the rebuild", () => {
  const progress = new IndexProgress();
  progress.rebuildTo(900);
  progress.advanceTo(800);
  expect(progress.isRebuilding).toBe(true);
  progress.rebuildAtMostTo(800);
  progress.rollBackTo(790);
  expect(progress.isRebuilding).toBe(false);
});

it("never forgets the oldest block that the node saw, even if a rollback goes to an earlier block", () => {
  const progress = new IndexProgress();
  for (const number of [7, 8, 9]) progress.saw({ number, hash: `0x${number}` });
  progress.forgetSeen(8);
  expect(progress.seen.map(({ number }) => number)).toEqual([7, 8]);
  progress.forgetSeen(3);
  expect(progress.seen.map(({ number }) => number)).toEqual([7]);
});

it("if the chain ends before every block that the node saw, the rebuild lasts until seeAnew is called", () => {
  const progress = new IndexProgress();
  for (const number of [900, 901]) progress.saw({ number, hash: `0x${number}` });
  progress.rebuildTo(901);
  progress.advanceTo(10);
  progress.rebuildAtMostTo(10);
  expect([progress.isOutdated, progress.isRebuilding]).toEqual([true, true]);
  const blocks = [9, 10].map((number) => ({ number, hash: `0x${number}` }) as const);
  progress.seeAnew(blocks);
  expect([progress.isOutdated, progress.isRebuilding, progress.seen]).toEqual([false, false, blocks]);
});
