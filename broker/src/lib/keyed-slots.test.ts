import { beforeEach, describe, expect, it } from "vitest";
import { Cancellation } from "./cancellation.ts";
import { KeyedSlots, type Slot } from "./keyed-slots.ts";

const never = new Cancellation();

describe("KeyedSlots", () => {
  let slots: KeyedSlots<string>;
  let order: string[];
  beforeEach(() => {
    slots = new KeyedSlots(2);
    order = [];
  });

  /** Takes a slot, and adds `name` to `order` once it has the slot. */
  async function take(name: string, key = "a", signal = never): Promise<Slot | undefined> {
    const taken = slots.take(key, signal);
    const slot = taken instanceof Promise ? await taken : taken;
    if (slot !== undefined) order.push(name);
    return slot;
  }

  it("gives two slots of each key at once, and further ones in order as slots become free", async () => {
    const all = ["1", "2", "3", "4"].map((name) => take(name));
    await take("other", "b");
    expect(order).toEqual(["1", "2", "other"]);
    expect(slots.waitingCount).toBe(2);
    (await all[1])?.leave();
    await all[2];
    expect(order).toEqual(["1", "2", "other", "3"]);
    (await all[0])?.leave();
    await all[3];
    expect(order).toEqual(["1", "2", "other", "3", "4"]);
    expect(slots.waitingCount).toBe(0);
  });

  it("frees a slot only once, even if `leave` is called twice", async () => {
    const first = await take("1");
    await take("2");
    const third = take("3");
    first?.leave();
    first?.leave();
    await third;
    const fourth = take("4");
    expect(order).toEqual(["1", "2", "3"]);
    (await third)?.leave();
    await fourth;
    expect(order).toEqual(["1", "2", "3", "4"]);
  });

  it("an aborted wait gives its turn to the next caller", async () => {
    const stopping = new Cancellation();
    const first = await take("1");
    await take("2");
    const aborted = take("3", "a", stopping);
    const last = take("4");
    stopping.abort();
    expect(await aborted).toBeUndefined();
    expect(await take("5", "a", stopping)).toBeUndefined();
    first?.leave();
    await last;
    expect(order).toEqual(["1", "2", "4"]);
  });
});
