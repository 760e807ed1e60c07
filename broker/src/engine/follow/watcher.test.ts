import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, type Position } from "../../domain/position.ts";
import { silentLogger } from "../../lib/logger.ts";
import { ReadWriteLock } from "../../lib/read-write-lock.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import type { Store } from "../../ports/store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { FeedHub } from "../dispatch/feed-hub.ts";
import { IndexProgress } from "../index-progress.ts";
import { RollBackHistory } from "../rollback-history.ts";
import { IndexHealth } from "./index-health.ts";
import { Restarter } from "./restarter.ts";
import { Watcher } from "./watcher.ts";

const { signal } = new AbortController();
const fail = (): Promise<never> => Promise.reject(new BrokerError("storeUnreachable"));

/** A node that watches an index of these blocks. */
async function create(numbers: readonly number[] = [1, 2, 3]) {
  const clock = new VirtualClock();
  const store = createMemoryStore();
  const progress = new IndexProgress();
  const health = new IndexHealth(clock);
  const restarts: Position[] = [];
  const warned: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warned.push(message) };
  const writer = { flush: async () => {} };
  const parts = { groupId: defaultGroupId, store, progress, health, logger };
  const restarter = new Restarter({
    ...parts,
    progressWriter: { flush: () => writer.flush() },
    changes: new ReadWriteLock(),
    rollBacks: new RollBackHistory(clock),
    readers: [{ stop: async () => {}, restart: (_, keptUpTo) => void restarts.push(keptUpTo) }],
  });
  const watcher = new Watcher({ ...parts, restarter, hub: new FeedHub({ slices: new TimeSlices(clock) }) });
  /** Another node writes empty blocks; `branch` tells them from others of the same numbers. */
  const write = (numbers: readonly number[], branch = ""): Promise<void> =>
    store.applyBlocks(
      defaultGroupId,
      numbers.map((number) => ({
        number,
        hash: `0x${number}${branch}` as const,
        opened: [],
        closed: [],
        batches: [],
        skippedSequences: [],
      })),
    );
  await write(numbers);
  return { store, progress, health, restarter, restarts, warned, writer, watcher, write };
}

/** Makes the database lose the number of each rollback: the rollback then is a loss of blocks. */
function loseRollBacks(store: Store): void {
  const findHead = store.findHead.bind(store);
  store.findHead = async (groupId) => {
    const head = await findHead(groupId);
    return head && { ...head, generation: 0 };
  };
}

it("if other blocks replace lost blocks before a restart of the readers succeeds, warns once and demands no rollback", async () => {
  const { store, health, restarter, restarts, warned, writer, watcher, write } = await create();
  await watcher.catchUp(signal);
  await store.rollBack(defaultGroupId, { number: 2, hash: "0x2" });
  loseRollBacks(store);
  const { flush } = writer;
  writer.flush = fail;
  await expect(watcher.catchUp(signal)).rejects.toMatchObject({ code: 200_207 });
  await write([3, 4], "b");
  writer.flush = flush;
  await watcher.catchUp(signal);
  expect(restarts).toEqual([endOfBlock(2)]);
  // A rollback would go to the head, and no cursor is beyond the head by now.
  expect(restarter.owesRollBack).toBe(false);
  expect(health.warning).toContain("the database lost a part of the index");
  writer.flush = fail;
  await expect(restarter.restart()).rejects.toMatchObject({ code: 200_207 });
  writer.flush = flush;
  await watcher.catchUp(signal);
  expect(restarts).toHaveLength(2);
  expect(warned).toEqual(["index rolled back"]);
});

it("warns at each loss of blocks, although the index has no block that the node saw", async () => {
  const { store, progress, warned, watcher, write } = await create([3]);
  loseRollBacks(store);
  await watcher.catchUp(signal);
  await store.rollBack(defaultGroupId, undefined);
  await watcher.catchUp(signal);
  expect(warned).toEqual(["index rolled back"]);
  await write([1, 2]);
  await watcher.catchUp(signal);
  expect(progress).toMatchObject({ blockNumber: 2, isRebuilding: true, seen: [{ number: 3, hash: "0x3" }] });
  await store.rollBack(defaultGroupId, { number: 1, hash: "0x1" });
  await watcher.catchUp(signal);
  expect(warned).toEqual(["index rolled back", "index rolled back"]);
});

it("sees only blocks of the generation with which its first readers begin", async () => {
  const { store, progress, restarts, watcher, write } = await create();
  const listBlocks = store.listBlocks.bind(store);
  store.listBlocks = async (...call) => {
    store.listBlocks = listBlocks;
    await store.rollBack(defaultGroupId, { number: 1, hash: "0x1" });
    await write([2, 3], "b");
    return listBlocks(...call);
  };
  await watcher.catchUp(signal);
  // Otherwise the next call would restart the readers that began in between. They would continue after block 3, without its events of the new branch.
  expect(progress.generation).toBe(1);
  await watcher.catchUp(signal);
  expect(restarts).toEqual([]);
});
