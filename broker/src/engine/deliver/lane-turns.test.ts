import { beforeEach, expect, it } from "vitest";
import { Cancellation } from "../../lib/cancellation.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { type LaneItem, Lanes, type LanesOptions } from "./lanes.ts";

interface Item extends LaneItem {
  readonly name: string;
}

/** `begun`: the items of each delivery that began. `underWay`: the function that ends each delivery in progress, by the items of the delivery. */
let begun: string[];
let underWay: Map<string, (goesOn: boolean) => void>;
let clock: VirtualClock;
beforeEach(() => {
  [begun, underWay, clock] = [[], new Map(), new VirtualClock()];
});

function create(options: Partial<LanesOptions<Item>>): Lanes<Item> {
  const deliver = (items: readonly Item[]): Promise<boolean> => {
    const text = items.map(({ name }) => name).join(" ");
    const ended = createDeferred<boolean>();
    begun.push(text);
    underWay.set(text, (goesOn) => {
      underWay.delete(text);
      ended.resolve(goesOn);
    });
    return ended.promise;
  };
  const limits = { concurrency: 2, itemsMax: 1, bytesMax: 100, waitMs: 0, isFull: () => false };
  return new Lanes({ clock, stopping: new Cancellation(), deliver, ...limits, ...options });
}

/** An item. The first letter of its name is its lane. */
function item(name: string, bytes = 1): Item {
  return { name, lane: name.slice(0, 1), bytes, isAlone: false };
}

async function end(delivery: string, goesOn = true): Promise<void> {
  underWay.get(delivery)?.(goesOn);
  await clock.settle();
}

it("makes one delivery of a lane at a time, at most `concurrency` at once, and lets the lanes take turns", async () => {
  const lanes = create({});
  for (const name of ["a1", "a2", "b1", "c1", "b2"]) lanes.add(item(name));
  expect([...underWay.keys()]).toEqual(["a1", "b1"]);
  await end("a1");
  expect([...underWay.keys()]).toEqual(["b1", "c1"]);
  await end("b1");
  expect([...underWay.keys()]).toEqual(["c1", "a2"]);
  await end("c1");
  expect([...underWay.keys()]).toEqual(["a2", "b2"]);
});

it("ends a delivery before it exceeds `bytesMax`, unless its first item does", async () => {
  const lanes = create({ itemsMax: 10 });
  lanes.add(item("a1"));
  for (const [index, bytes] of [60, 40, 1, 200, 5].entries()) lanes.add(item(`a${index + 2}`, bytes));
  for (const delivery of ["a1", "a2 a3", "a4", "a5", "a6"]) await end(delivery);
  expect(begun).toEqual(["a1", "a2 a3", "a4", "a5", "a6"]);
});

it("waits for more items again after each delivery, and leaves no timer when it ends", async () => {
  const lanes = create({ itemsMax: 2, waitMs: 50 });
  lanes.add(item("a1"));
  await clock.advance(50);
  lanes.add(item("a2"));
  await end("a1");
  await clock.advance(49);
  expect(begun).toEqual(["a1"]);
  await clock.advance(1);
  expect(begun).toEqual(["a1", "a2"]);
  lanes.add(item("b1"));
  await end("a2");
  expect(clock.timers).toBe(1);
  await lanes.end();
  expect(clock.timers).toBe(0);
});

it("makes one delivery of a lane at a time, even if the lane's wait began while the lane waited for its turn", async () => {
  let isFull = true;
  const lanes = create({ itemsMax: 5, waitMs: 50, isFull: () => isFull });
  for (const name of ["a1", "b1", "c1", "d1"]) lanes.add(item(name));
  await end("a1");
  isFull = false;
  lanes.add(item("d2"));
  for (const delivery of ["b1", "c1"]) await end(delivery);
  lanes.add(item("d3"));
  await clock.advance(50);
  expect([...underWay.keys()]).toEqual(["d1 d2"]);
  await end("d1 d2");
  await clock.advance(49);
  expect(begun).toEqual(["a1", "b1", "c1", "d1 d2"]);
  await clock.advance(1);
  expect(begun.at(-1)).toBe("d3");
});

it("begins no delivery after one that returned false", async () => {
  const lanes = create({});
  for (const name of ["a1", "a2", "b1", "c1"]) lanes.add(item(name));
  await end("a1", false);
  await end("b1");
  expect(begun).toEqual(["a1", "b1"]);
});

it("end lets no further delivery begin, and waits for the deliveries in progress", async () => {
  const lanes = create({});
  for (const name of ["a1", "a2", "b1", "c1"]) lanes.add(item(name));
  let hasEnded = false;
  const ending = lanes.end().then(() => (hasEnded = true));
  await end("a1");
  expect(hasEnded).toBe(false);
  await end("b1");
  await ending;
  expect(begun).toEqual(["a1", "b1"]);
});
