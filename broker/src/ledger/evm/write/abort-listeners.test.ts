import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { AbortListeners } from "./abort-listeners.ts";

it("calls back for each item of the signal, with one listener, and keeps none for a signal without items", () => {
  const aborted: string[] = [];
  const listeners = new AbortListeners<string>((item) => aborted.push(item));
  const [first, second] = [new AbortController(), new AbortController()];
  listeners.add(first.signal, "a");
  listeners.add(first.signal, "b");
  listeners.add(first.signal, "c");
  listeners.add(second.signal, "d");
  expect(getEventListeners(first.signal, "abort")).toHaveLength(1);
  listeners.remove(first.signal, "b");
  expect(getEventListeners(first.signal, "abort")).toHaveLength(1);
  listeners.remove(second.signal, "d");
  expect(getEventListeners(second.signal, "abort")).toHaveLength(0);
  first.abort();
  expect(aborted).toEqual(["a", "c"]);
});
