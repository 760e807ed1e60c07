import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { onEndSignals } from "./end-signals.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function listen() {
  const source = new EventEmitter();
  const calls: string[] = [];
  onEndSignals({ begin: (signal: string) => calls.push(signal), insist: () => calls.push("insist") }, source);
  const send = (signal: string, afterMs: number): void => {
    vi.advanceTimersByTime(afterMs);
    source.emit(signal, signal);
  };
  return { send, calls, source };
}

describe("the signals that end the process", () => {
  // checks/faults/life.test.ts sends SIGHUP to a real process, which ends by it.
  it.each(["SIGTERM", "SIGINT", "SIGHUP"])("%s begins the end", (signal) => {
    const { send, calls } = listen();
    send(signal, 0);
    expect(calls).toEqual([signal]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"])(
    "%s within a second of the first signal repeats it, as npm does",
    (signal) => {
      const { send, calls } = listen();
      send("SIGINT", 0);
      send(signal, 3);
      send(signal, 996);
      expect(calls).toEqual(["SIGINT"]);
    },
  );

  it("a signal over a second after the first one insists, and so does each later one", () => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    send("SIGINT", 1_001);
    send("SIGTERM", 0);
    expect(calls).toEqual(["SIGINT", "insist", "insist"]);
  });

  it("a signal that has waited while the event loop was busy for over a second repeats the first one", () => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    vi.advanceTimersToNextTimer(); // The event loop runs timers before it handles signals.
    send("SIGINT", 0);
    expect(calls).toEqual(["SIGINT"]);
  });

  it.each(["SIGTERM", "SIGHUP"])("SIGHUP after %s never insists, and the process ends by SIGHUP", (first) => {
    const { send, calls, source } = listen();
    send(first, 0);
    send("SIGHUP", 5_000);
    send("SIGHUP", 5_000);
    expect(calls).toEqual([first]);
    expect(source.listenerCount("exit")).toBe(1);
  });

  it("without SIGHUP, the process ends by itself", () => {
    const { send, source } = listen();
    send("SIGTERM", 0);
    expect(source.listenerCount("exit")).toBe(0);
  });
});
