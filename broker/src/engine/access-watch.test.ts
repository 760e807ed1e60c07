import { beforeEach, expect, it } from "vitest";
import type { CallbackSubscription } from "../domain/subscription.ts";
import { TimeSlices } from "../lib/time-slices.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import type { Access } from "./access/access.ts";
import type { Owner } from "./access/caller.ts";
import { AccessWatch } from "./access-watch.ts";
import type { DeliveryWorker } from "./deliver/delivery-worker.ts";
import { DeliveryWorkers } from "./deliver/delivery-workers.ts";

let clock: VirtualClock;
let workers: DeliveryWorkers;
let ended: Set<string>;
let asked: number;
let watch: AccessWatch;
let turns: (() => void)[];
beforeEach(() => {
  clock = new VirtualClock();
  [ended, asked, turns] = [new Set(), 0, []];
  const worker = { start: () => {}, stop: async () => {}, feed: { close: () => {} } } as unknown as DeliveryWorker; // All that DeliveryWorkers uses.
  workers = new DeliveryWorkers(() => worker, new TimeSlices(clock));
  const mayDeliver = ({ principal = "" }: { readonly principal?: string | undefined }): boolean => {
    asked += 1;
    return !ended.has(principal);
  };
  watch = new AccessWatch({
    access: { mayDeliver } as unknown as Access, // The only method that the watch calls.
    sessions: { checkRights: () => {} },
    workers,
    suspend: async (id) => void (await workers.remove(id, 0)),
    slices: new TimeSlices({ monotonic: () => asked / 10, soon: (action) => void turns.push(action) }), // Each question takes 0.1 ms.
  });
});

/** Runs turns of the event loop until the watch waits no more. Returns the largest number of questions in one of them. */
async function largestTurn(): Promise<number> {
  await clock.settle();
  let largest = asked;
  while (turns.length > 0) {
    const before = asked;
    for (const action of turns.splice(0)) action();
    await clock.settle();
    largest = Math.max(largest, asked - before);
  }
  return largest;
}

function add(principal: string, index: number): void {
  workers.add({ id: `${principal} ${index}`, principal } as unknown as CallbackSubscription); // The fields that DeliveryWorkers reads.
}
const nobody = new Set<Owner>();
const left = (): number => [...workers.all()].length;

it("checks one subscription of each new or changed owner, and none of the others", async () => {
  for (let index = 0; index < 100_000; index += 1) add(`owner ${index % 1_000}`, index);
  watch.check(nobody);
  await largestTurn();
  expect(asked).toBe(1_000);
  watch.check(nobody);
  await largestTurn();
  expect(asked).toBe(1_000);
  watch.check(new Set(["owner 7" as Owner]));
  await largestTurn();
  expect(asked).toBe(1_001);
});

it("checks no owner when an issuer's keys have changed, since callbacks need none of them", async () => {
  for (let index = 0; index < 10; index += 1) add(`owner ${index}`, index);
  watch.check(nobody);
  await largestTurn();
  watch.check("all");
  await largestTurn();
  expect(asked).toBe(10);
});

it("suspends every subscription of an owner whose rights ended, and no other", async () => {
  for (let index = 0; index < 10; index += 1) add(`owner ${index % 2}`, index);
  watch.check(nobody);
  await largestTurn();
  ended.add("owner 1");
  watch.check(new Set(["owner 1" as Owner]));
  await largestTurn();
  expect([...workers.all()].map(({ subscription }) => subscription.principal)).toEqual(Array(5).fill("owner 0"));
});

it("suspends a subscription that is added after its owner's rights have ended", async () => {
  ended.add("owner");
  watch.check(nobody);
  add("owner", 1);
  watch.check(nobody);
  await largestTurn();
  expect(left()).toBe(0);
});

it("checks 1,000 new owners in several turns, fewer than 200 in each turn", async () => {
  for (let index = 0; index < 1_000; index += 1) add(`owner ${index}`, index);
  watch.check(nobody);
  const largest = await largestTurn();
  expect(asked).toBe(1_000);
  expect(largest).toBeLessThan(200);
});
