import { beforeEach, expect, it } from "vitest";
import { defaultGroupId, parseGroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { findWaitingTimes } from "./waiting-times.ts";

const minuteMs = 60_000;
let clock: VirtualClock;
/** Blocks that the chain was asked for. */
let asked: number[];
beforeEach(() => {
  clock = new VirtualClock();
  asked = [];
});

/** Asks a chain with one block a minute, which never answers for the `silent` blocks. */
function find(all: Parameters<typeof findWaitingTimes>[0], silent: readonly number[] = []) {
  const times = {
    find: (block: number): Promise<number | undefined> => {
      asked.push(block);
      return silent.includes(block) ? new Promise(() => {}) : Promise.resolve(block * minuteMs);
    },
  };
  const groups = { find: (id: string) => (id === defaultGroupId ? { times } : undefined) };
  return findWaitingTimes(all, { groups, clock });
}

const at = (block: number, index = 0) => ({ groupId: defaultGroupId, from: toPosition(block, index) });

it("finds the block time of each entry's oldest waiting event in one read per block; undefined without an event or for an unknown group", async () => {
  const none = { groupId: defaultGroupId, from: undefined };
  const unknown = { groupId: parseGroupId("other"), from: toPosition(3, 0) };
  const found = await find([at(7), none, at(5, 2), unknown, at(7, 9)]);
  expect(found).toEqual([7 * minuteMs, undefined, 5 * minuteMs, undefined, 7 * minuteMs]);
  expect(asked).toEqual([5, 7]);
});

it("asks the chain for the times of at most 32 blocks, the oldest ones", async () => {
  const blocks = Array.from({ length: 500 }, (_, index) => 500 - index);
  const found = await find([...blocks, ...blocks].map((block) => at(block)));
  expect(asked).toEqual(Array.from({ length: 32 }, (_, index) => index + 1));
  expect(found.filter((time) => time !== undefined)).toHaveLength(64);
});

it("waits a second for a silent chain, then gives the times that it has", async () => {
  const finding = find([at(1), at(2)], [2]);
  await clock.advance(1_000);
  expect(await finding).toEqual([minuteMs, undefined]);
});
