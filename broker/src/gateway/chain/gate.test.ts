import { describe, expect, it, vi } from "vitest";
import { Gate, type Leave } from "./gate.ts";

const options = { runningMax: 2, waitingMax: 3, waitTimeoutMs: 600_000 };

/** Whether a promise has settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = {};
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}

async function enter(gate: Gate): Promise<Leave> {
  const leave = await gate.enter();
  if (leave === undefined) throw new Error("not let in");
  return leave;
}

describe("Gate", () => {
  it("admits callers up to the limit, and the next in order when one leaves", async () => {
    const gate = new Gate(options);
    const first = await enter(gate);
    await enter(gate);
    const third = gate.enter();
    const fourth = gate.enter();
    expect(await isSettled(third)).toBe(false);
    first();
    (await third)?.();
    expect(await fourth).toBeTypeOf("function");
  });

  it("refuses at once when too many wait", async () => {
    const gate = new Gate(options);
    const leave = await enter(gate);
    await enter(gate);
    const waiting = [gate.enter(), gate.enter(), gate.enter()];
    expect(await gate.enter()).toBeUndefined();
    leave();
    expect(await waiting[0]).toBeTypeOf("function");
    const later = gate.enter();
    expect(await isSettled(later)).toBe(false);
  });

  it("refuses a caller that waited too long, and admits the next one", async () => {
    vi.useFakeTimers();
    try {
      const gate = new Gate({ ...options, runningMax: 1, waitTimeoutMs: 1000 });
      const leave = await enter(gate);
      const early = gate.enter();
      vi.advanceTimersByTime(900);
      const late = gate.enter();
      vi.advanceTimersByTime(200);
      leave();
      expect(await early).toBeUndefined();
      expect(await late).toBeTypeOf("function");
    } finally {
      vi.useRealTimers();
    }
  });

  it("admits no caller after it is closed, not even waiting ones", async () => {
    const gate = new Gate({ ...options, runningMax: 1 });
    const leave = await enter(gate);
    const waiting = gate.enter();
    gate.close();
    expect(await waiting).toBeUndefined();
    leave();
    expect(await gate.enter()).toBeUndefined();
  });

  it("pauses as long as a long call worked; does not pause after a call with little work, however long that call waited elsewhere", async () => {
    vi.useFakeTimers();
    try {
      const gate = new Gate({ ...options, runningMax: 1, pauseFromMs: 50 });
      const long = await enter(gate);
      const second = gate.enter();
      long(300);
      vi.advanceTimersByTime(299);
      expect(await isSettled(second)).toBe(false);
      vi.advanceTimersByTime(1);
      const short = await second;
      vi.advanceTimersByTime(1_000);
      const third = gate.enter();
      short?.(49);
      expect(await isSettled(third)).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});
