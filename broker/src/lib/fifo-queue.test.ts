import { expect, it } from "vitest";
import { FifoQueue } from "./fifo-queue.ts";

it("returns items in the order of their arrival, even while more items arrive", () => {
  const queue = new FifoQueue<number>();
  const taken: (number | undefined)[] = [];
  let added = 0;
  while (added < 10_000) {
    queue.add(added);
    queue.add(added + 1);
    added += 2;
    if (added > 2_000) taken.push(queue.take());
  }
  expect(queue.size).toBe(added - taken.length);
  while (queue.size > 0) taken.push(queue.take());
  expect(taken).toEqual(Array.from({ length: added }, (_, index) => index));
  expect(queue.take()).toBeUndefined();
});

it("returns undefined when it is empty, and is usable afterwards", () => {
  const queue = new FifoQueue<string>();
  expect(queue.take()).toBeUndefined();
  queue.add("one");
  expect([queue.take(), queue.take(), queue.size]).toEqual(["one", undefined, 0]);
});
