import { expect, it } from "vitest";
import { createDeferred } from "./deferred.ts";
import { ReadWriteLock } from "./read-write-lock.ts";

it("an exclusive task waits for earlier shared tasks, and later tasks wait for the exclusive one", async () => {
  const lock = new ReadWriteLock();
  const order: string[] = [];
  const gates = [createDeferred<void>(), createDeferred<void>(), createDeferred<void>()] as const;
  const task = (name: string, gate?: Promise<void>) => async (): Promise<string> => {
    order.push(`${name} begins`);
    await gate;
    order.push(`${name} ends`);
    return name;
  };
  const all = [
    lock.shared(task("a", gates[0].promise)),
    lock.shared(task("b", gates[1].promise)),
    lock.exclusive(task("c", gates[2].promise)),
    lock.exclusive(task("d")),
    lock.shared(task("e")),
  ];
  for (const gate of gates) {
    gate.resolve();
    await new Promise(setImmediate);
  }
  expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "e"]);
  expect(order.slice(0, 5)).toEqual(["a begins", "b begins", "a ends", "b ends", "c begins"]);
  expect(order[5]).toBe("c ends");
  expect(order).toHaveLength(10);
});

async function fail(): Promise<never> {
  throw new Error("failed");
}

it("continues with the next task after a failure", async () => {
  const lock = new ReadWriteLock();
  await expect(lock.exclusive(fail)).rejects.toThrow("failed");
  await expect(lock.shared(fail)).rejects.toThrow("failed");
  expect(await lock.exclusive(async () => 1)).toBe(1);
});
