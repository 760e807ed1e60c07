import { expect, it } from "vitest";
import { ReceiverCaller } from "./receiver-caller.ts";
import { ManualClock } from "./testing/manual-clock.ts";

const refuse = (): never => {
  throw new Error("no secret");
};

it("rejects if the message cannot be made, and stops without waiting for the call", async () => {
  const caller = new ReceiverCaller({
    clock: new ManualClock(),
    connect: () => expect.fail("nothing is sent"),
    connectionsMax: 1,
    connectionsTotalMax: 1,
    bytesPerSecondMax: 1_000,
  });
  const call = { origin: "http://receiver.example", path: "/", method: "POST", bytes: 1, timeoutMs: 5_000 } as const;
  const { signal } = new AbortController();
  await expect(caller.call({ ...call, message: refuse }, { signal })).rejects.toThrow("no secret");
  await caller.stop(60_000); // The manual clock does not end the grace.
});
