import { expect, it } from "vitest";
import { createDeferred } from "./deferred.ts";
import { untilAborted } from "./until-aborted.ts";

it("returns the result or the failure of the work if no signal aborts before", async () => {
  const signal = new AbortController().signal;
  expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(untilAborted(Promise.reject(new Error("failed")), signal)).rejects.toThrow("failed");
});

it("returns undefined once one of the signals aborts", async () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const result = untilAborted(createDeferred<number>().promise, first.signal, second.signal);
  second.abort();
  expect(await result).toBeUndefined();
});

it("handles the failure of the work after a signal that had aborted before the call", async () => {
  const work = createDeferred<number>();
  expect(await untilAborted(work.promise, AbortSignal.abort())).toBeUndefined();
  work.reject(new Error("failed"));
  await new Promise(setImmediate); // An unhandled rejection would end the test run.
});
