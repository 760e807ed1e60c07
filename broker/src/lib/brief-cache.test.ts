import { expect, it } from "vitest";
import { BriefCache } from "./brief-cache.ts";

function start(entriesMax = 10) {
  const asked: string[] = [];
  const time = { now: 0 };
  const cache = new BriefCache<number>({ now: () => time.now, ageMsMax: 100, entriesMax });
  const read = (key: string): Promise<number> =>
    cache.read(key, async () => {
      asked.push(key);
      return asked.length;
    });
  return { asked, cache, read, time };
}

it("asks once for each key until the answer is too old", async () => {
  const { asked, read, time } = start();
  expect(await Promise.all([read("a"), read("a"), read("b")])).toEqual([1, 1, 2]);
  time.now = 99;
  expect(await read("a")).toBe(1);
  time.now = 100;
  expect([await read("a"), await read("b")]).toEqual([3, 4]);
  expect(asked).toEqual(["a", "b", "a", "b"]);
});

it("forgets the oldest answer when it has too many", async () => {
  const { asked, read, time } = start(2);
  for (const key of ["a", "b", "c", "b", "a"]) await read(key);
  expect(asked).toEqual(["a", "b", "c", "a"]);
  time.now = 100;
  await read("c");
  expect(asked).toEqual(["a", "b", "c", "a", "c"]);
});

it("keeps a failure for the same time as an answer", async () => {
  const { cache, read, time } = start();
  const failing = (): Promise<number> => cache.read("a", () => Promise.reject(new Error("down")));
  await expect(failing()).rejects.toThrow("down");
  await expect(read("a")).rejects.toThrow("down");
  time.now = 100;
  expect(await read("a")).toBe(1);
});
