import { expect, it } from "vitest";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import { DeliveryWindow } from "../../domain/delivery-window.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import type { DeliveryWorker } from "../deliver/delivery-worker.ts";
import { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Feed } from "../dispatch/feed.ts";
import type { Connection } from "./connection.ts";
import { ReadingLoops, type ReadingParts } from "./reading-loops.ts";
import { readOnEach, stopEach } from "./session-slices.ts";
import { Memberships } from "./shares/memberships.ts";

const readers = 1_000;

/** An event loop with readers, each of whose steps takes 0.1 ms. */
class SlowLoop {
  steps = 0;
  readonly #turns: (() => void)[] = [];
  readonly slices = new TimeSlices({
    monotonic: () => this.steps / 10,
    soon: (action) => void this.#turns.push(action),
  });
  readonly step = async (): Promise<void> => void (this.steps += 1);

  /** Runs all turns of some work. Returns the largest number of steps in one of them. */
  async largestTurn(work: () => Promise<void>): Promise<number> {
    const done = work();
    let largest = this.steps;
    while (this.#turns.length > 0) {
      const before = this.steps;
      for (const action of this.#turns.splice(0)) {
        action();
        for (let tick = 0; tick < 4; tick += 1) await Promise.resolve();
      }
      largest = Math.max(largest, this.steps - before);
    }
    await done;
    return largest;
  }
}

const all = <T>(one: T): readonly T[] => Array.from({ length: readers }, () => one);

it("stops a thousand sessions in slices before a rollback", async () => {
  const loop = new SlowLoop();
  const largest = await loop.largestTurn(() => stopEach(all({ stop: loop.step }), loop.slices));
  expect(loop.steps).toBe(readers);
  expect(largest).toBeLessThan(readers / 10);
});

it("lets a thousand sessions read on in slices after a rollback", async () => {
  const loop = new SlowLoop();
  const largest = await loop.largestTurn(() => readOnEach(all({ readOn: () => void loop.step() }), loop.slices));
  expect(loop.steps).toBe(readers);
  expect(largest).toBeLessThan(readers / 10);
});

it("stops a thousand callback workers in slices before a rollback", async () => {
  const loop = new SlowLoop();
  const worker = { start: () => {}, stop: loop.step, feed: { close: () => {} } } as unknown as DeliveryWorker; // All that DeliveryWorkers uses of a worker.
  const workers = new DeliveryWorkers(() => worker, loop.slices);
  for (let index = 0; index < readers; index += 1)
    workers.add({ id: `${index}`, groupId: defaultGroupId } as unknown as CallbackSubscription); // The fields that DeliveryWorkers reads.
  const largest = await loop.largestTurn(() => workers.removeAll(defaultGroupId));
  expect(loop.steps).toBe(readers);
  expect(largest).toBeLessThan(readers / 10);
  expect([...workers.all()]).toEqual([]);
});

it("closes the feeds of a thousand sessions in slices when a key is revoked", async () => {
  const loop = new SlowLoop();
  // All that ReadingLoops uses of a feed that is caught up, and of a session with nothing else to deliver.
  const feed = { isCaughtUp: true, peek: () => undefined, woken: async () => {}, close: loop.step } as unknown as Feed;
  const idle = { retained: { isEmpty: true }, rejections: {}, waiting: { wake: () => {} } };
  const parts = { ...idle, window: new DeliveryWindow(), slices: loop.slices } as unknown as ReadingParts;
  const receiver = { give: () => {}, giveRetained: () => {}, failed: () => {} };
  const reading = (): ReadingLoops => new ReadingLoops({} as Connection, feed, { parts, receiver });
  const readings = Array.from({ length: readers }, reading);
  const largest = await loop.largestTurn(async () => void (await Promise.all(readings.map((one) => one.end()))));
  expect(loop.steps).toBe(readers);
  expect(largest).toBeLessThan(readers / 10);
});

it("lets a thousand sessions leave their shares in slices when a key is revoked", async () => {
  const loop = new SlowLoop();
  const shares = { join: () => {}, wake: () => {}, leave: () => void loop.step() };
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const session = { hasRoom: () => false, reserve: () => expect.unreachable(), pass: () => expect.unreachable() };
  const toFilter = (name: string): SessionFilter => ({ ...options, filter: parseTopicFilter(`$share/${name}/a`) });
  const sharing = (): Memberships => {
    const memberships = new Memberships({ shares, slices: loop.slices, mayReceiveAll: () => true }, session);
    for (const name of ["one", "two"]) memberships.join(toFilter(name));
    return memberships;
  };
  const members = Array.from({ length: readers }, sharing);
  const largest = await loop.largestTurn(async () => void (await Promise.all(members.map((one) => one.leaveAll()))));
  expect(loop.steps).toBe(2 * readers);
  expect(largest).toBeLessThan(readers / 10);
  expect(members[0]?.join(toFilter("three"))).toBe(false);
});
