import { beforeEach, expect, it } from "vitest";
import { positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { group, history, otherGroup } from "../../ports/store-examples.contract.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { PendingCounts, type Standing } from "./pending-counts.ts";

let store: Store;
let asked: number[];
beforeEach(async () => {
  asked = [];
  store = createMemoryStore();
  const countEach = store.countEventsAfterEach.bind(store);
  store.countEventsAfterEach = async (groupId, places) => {
    asked.push(places.length);
    return countEach(groupId, places);
  };
  for (const groupId of [group, otherGroup]) await store.applyBlocks(groupId, history);
});

const standing = (filter: string, cursor = positionZero, groupId = group): Standing => {
  return { groupId, filter: parseTopicFilter(filter), cursor };
};

it("counts what is left for each, by the name of a topic and by a pattern, in each group", async () => {
  const counts = new PendingCounts(store);
  const standings = [
    standing("alpha"),
    standing("alpha", toPosition(2, 1)),
    standing("beta"),
    standing("#"),
    standing("#", toPosition(4, 1)),
    standing("alpha", toPosition(4, 1), otherGroup),
    standing("gamma"),
  ];
  await counts.read(standings);
  expect(standings.map((one) => counts.get(one))).toEqual([6, 4, 3, 9, 2, 2, 0]);
});

it("asks the store once for many, and once for those that stand at the same event", async () => {
  const places = Array.from({ length: 500 }, (_, index) => standing("alpha", toPosition(1, index)));
  await new PendingCounts(store).read([...places, ...places]);
  expect(asked).toEqual([500]);
});

it("asks nothing where nothing is to be counted", async () => {
  await new PendingCounts(store).read([]);
  expect(asked).toEqual([]);
});
