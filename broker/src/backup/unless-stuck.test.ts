import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createDeferred } from "../lib/deferred.ts";
import { unlessStuck } from "./unless-stuck.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("gives an operation ten minutes, and later operations a second while the first one hangs", async () => {
  const [write, close, later] = [createDeferred<void>(), createDeferred<void>(), createDeferred<void>()];
  const settled: string[] = [];
  const follow = (name: string, operation: Promise<void>): void => {
    const note = (): void => void settled.push(name);
    unlessStuck(operation).then(note, note);
  };
  follow("write", write.promise);
  await vi.advanceTimersByTimeAsync(599_999);
  expect(settled).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(settled).toEqual(["write"]);
  follow("close", close.promise); // Ends only after the write.
  await vi.advanceTimersByTimeAsync(1_000);
  expect(settled).toEqual(["write", "close"]);
  for (const { resolve } of [write, close]) resolve();
  await vi.advanceTimersByTimeAsync(0);
  follow("later", later.promise);
  await vi.advanceTimersByTimeAsync(599_999);
  expect(settled).toEqual(["write", "close"]);
  later.resolve();
  await vi.advanceTimersByTimeAsync(0);
});
