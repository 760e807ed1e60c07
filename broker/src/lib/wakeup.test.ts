import { expect, test, vi } from "vitest";
import { Wakeup } from "./wakeup.ts";

test("wakes everyone who waits, and remembers nothing until the next wait", async () => {
  const { signal } = new AbortController();
  const wakeup = new Wakeup();
  const both = Promise.all([wakeup.wait(signal), wakeup.wait(signal)]);
  wakeup.wake();
  await both;
  const ended = vi.fn();
  const later = wakeup.wait(signal).then(ended);
  await new Promise(setImmediate);
  expect(ended).not.toHaveBeenCalled();
  wakeup.wake();
  await later;
});

test("does not touch a wait again after its signal has ended it", async () => {
  const wakeup = new Wakeup();
  const deadlines = Array.from({ length: 100 }, () => new AbortController());
  const waits = Promise.all(deadlines.map(({ signal }) => wakeup.wait(signal)));
  for (const deadline of deadlines) deadline.abort();
  await waits;
  const touched = deadlines.map(({ signal }) => vi.spyOn(signal, "removeEventListener"));
  wakeup.wake();
  await new Promise(setImmediate);
  for (const touch of touched) expect(touch).not.toHaveBeenCalled();
});
