import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withDeadline } from "./with-deadline.ts";
import { collectGarbage } from "./testing/collect-garbage.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Rejects with the reason of its signal. */
function wait(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

it("ends a task in time, even after a garbage collection", async () => {
  const { signal } = new AbortController();
  const waiting = withDeadline({ timeoutMs: 1_000, signal }, wait);
  const ended = expect(waiting).rejects.toMatchObject({ name: "TimeoutError" });
  collectGarbage();
  vi.advanceTimersByTime(1_000);
  await ended;
});

it("ends a task with the reason of the given signal, even if the signal has aborted before", async () => {
  const ending = new AbortController();
  const reason = new Error("stopped");
  const waiting = expect(withDeadline({ timeoutMs: 1_000, signal: ending.signal }, wait)).rejects.toBe(reason);
  ending.abort(reason);
  await waiting;
  await expect(withDeadline({ timeoutMs: 1_000, signal: ending.signal }, wait)).rejects.toBe(reason);
});

it("leaves no timer behind", async () => {
  expect(await withDeadline({ timeoutMs: 1_000 }, async () => "done")).toBe("done");
  expect(vi.getTimerCount()).toBe(0);
});
