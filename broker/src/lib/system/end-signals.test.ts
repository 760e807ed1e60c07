import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { onEndSignals } from "./end-signals.ts";

function listen() {
  const source = new EventEmitter();
  const calls: string[] = [];
  let time = 5_000;
  const handlers = { begin: (signal: string) => calls.push(signal), insist: () => calls.push("insist") };
  onEndSignals(handlers, { source, monotonic: () => time });
  const send = (signal: string, afterMs: number): void => {
    time += afterMs;
    source.emit(signal, signal);
  };
  return { send, calls };
}

describe("the signals that end the process", () => {
  // checks/faults/life.test.ts sends SIGHUP to a real process, which ends by it.
  it.each(["SIGTERM", "SIGINT"])("%s begins the end", (signal) => {
    const { send, calls } = listen();
    send(signal, 0);
    expect(calls).toEqual([signal]);
  });

  it.each(["SIGINT", "SIGTERM"])("%s within a second of the first signal repeats it, as npm does", (signal) => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    send(signal, 3);
    send(signal, 996);
    expect(calls).toEqual(["SIGINT"]);
  });

  it("a signal a second after the first one insists, and so does each later one", () => {
    const { send, calls } = listen();
    send("SIGINT", 0);
    send("SIGINT", 1_000);
    send("SIGTERM", 0);
    expect(calls).toEqual(["SIGINT", "insist", "insist"]);
  });
});
