import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { onEndSignals } from "./end-signals.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function listen() {
  const source = new EventEmitter();
  const calls: string[] = [];
  onEndSignals({ stop: (signal: string) => calls.push(signal), exitNow: () => calls.push("exit now") }, source);
  const send = (signal: string, afterMs: number): void => {
    vi.advanceTimersByTime(afterMs);
    source.emit(signal, signal);
  };
  return { send, calls, source };
}

describe("the signals that end the process", () => {
  // checks/faults/life.test.ts sends SIGHUP to a real process.
  it.each(["SIGTERM", "SIGINT", "SIGHUP"])("the first signal, %s, stops the process in order", (signal) => {
    const { send, calls } = listen();
    send(signal, 0);
    expect(calls).toEqual([signal]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"])(
    "%s within a second of the first signal is ignored, since npm sends copies",
    (signal) => {
      const { send, calls } = listen();
      send("SIGINT", 0);
      send(signal, 3);
      send(signal, 996);
      expect(calls).toEqual(["SIGINT"]);
    },
  );

  it("each signal over a second after the first one makes the process exit at once", () => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    send("SIGINT", 1_001);
    send("SIGTERM", 0);
    expect(calls).toEqual(["SIGINT", "exit now", "exit now"]);
  });

  it("a second signal is ignored if it had to wait while the event loop was busy for over a second", () => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    vi.advanceTimersToNextTimer(); // The event loop runs timers before it handles signals.
    send("SIGINT", 0);
    expect(calls).toEqual(["SIGINT"]);
  });

  it.each(["SIGTERM", "SIGHUP"])(
    "SIGHUP after %s never makes the process exit at once, and the process ends with SIGHUP",
    (first) => {
      const { send, calls, source } = listen();
      send(first, 0);
      send("SIGHUP", 5_000);
      send("SIGHUP", 5_000);
      expect(calls).toEqual([first]);
      expect(source.listenerCount("exit")).toBe(1);
    },
  );

  it("without SIGHUP, the process ends with its exit code", () => {
    const { send, source } = listen();
    send("SIGTERM", 0);
    expect(source.listenerCount("exit")).toBe(0);
  });
});
