import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { ReceiverCaller } from "./receiver-caller.ts";
import { ManualClock } from "./testing/manual-clock.ts";

const connect = (): never => expect.fail("nothing is sent");
const refuse = (): never => {
  throw new Error("no secret");
};

it("rejects a call whose message cannot be built; a later stop does not wait for the call", async () => {
  const caller = new ReceiverCaller({
    clock: new ManualClock(),
    connect,
    connectionsMax: 1,
    connectionsTotalMax: 1,
    bytesPerSecondMax: 1_000,
  });
  const call = { origin: "http://receiver.example", path: "/", method: "POST", bytes: 1, timeoutMs: 5_000 } as const;
  const { signal } = new AbortController();
  await expect(caller.call({ ...call, message: refuse }, { signal })).rejects.toThrow("no secret");
  await caller.stop(60_000); // The manual clock does not end the grace.
});

it("builds one long message per turn of the event loop, however many connections are free", async () => {
  const turns: (() => void)[] = [];
  let now = 0;
  const clock = {
    now: () => now,
    monotonic: () => now,
    after: () => () => {},
    soon: (action: () => void) => void turns.push(action),
  };
  const connectionsMax = 20;
  const limits = { connectionsMax, connectionsTotalMax: connectionsMax, bytesPerSecondMax: 1_000_000 };
  const caller = new ReceiverCaller({ ...limits, clock, connect });
  let made = 0;
  const message = (): never => {
    made += 1;
    now += 10;
    throw new Error("made");
  };
  const call = { origin: "http://receiver.example", path: "/", method: "POST", bytes: 1, timeoutMs: 5_000 } as const;
  const { signal } = new AbortController();
  const calls = Array.from({ length: connectionsMax }, () => caller.call({ ...call, message }, { signal }));
  const ended = Promise.allSettled(calls);
  await setImmediate();
  for (let turn = 1; turn <= connectionsMax; turn += 1) {
    expect(made).toBe(turn);
    for (const action of turns.splice(0)) {
      action();
      await setImmediate(); // Microtasks run between the actions of a turn, too.
    }
  }
  expect((await ended).every(({ status }) => status === "rejected")).toBe(true);
});
