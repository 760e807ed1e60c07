import { describe, expect, it, vi } from "vitest";
import { Cancellation, type CancelSignal } from "./cancellation.ts";

describe("Cancellation", () => {
  it("calls each listener once, in the order in which they were added", () => {
    const cancellation = new Cancellation();
    const calls: number[] = [];
    cancellation.addEventListener("abort", () => calls.push(1));
    cancellation.addEventListener("abort", () => calls.push(2));
    cancellation.abort();
    cancellation.abort();
    expect(calls).toEqual([1, 2]);
  });

  it("does not call a listener that was removed, also by an earlier listener", () => {
    const cancellation = new Cancellation();
    const [removed, late] = [vi.fn(), vi.fn()];
    cancellation.addEventListener("abort", removed);
    cancellation.removeEventListener("abort", removed);
    cancellation.addEventListener("abort", () => cancellation.removeEventListener("abort", late));
    cancellation.addEventListener("abort", late);
    cancellation.abort();
    expect(removed).not.toHaveBeenCalled();
    expect(late).not.toHaveBeenCalled();
  });

  it("is aborted before its first listener runs, and ignores listeners that are added later", () => {
    const cancellation = new Cancellation();
    const [seen, late]: [boolean[], () => void] = [[], vi.fn()];
    cancellation.addEventListener("abort", () => {
      seen.push(cancellation.aborted);
      cancellation.addEventListener("abort", late);
    });
    expect(cancellation.aborted).toBe(false);
    cancellation.abort();
    expect(seen).toEqual([true]);
    expect(late).not.toHaveBeenCalled();
  });

  it("can be replaced by an AbortSignal", () => {
    const signal: CancelSignal = AbortSignal.abort();
    expect(signal.aborted).toBe(true);
  });
});
