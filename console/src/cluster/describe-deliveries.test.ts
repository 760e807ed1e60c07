import { expect, it } from "vitest";
import { describeDeliveries } from "./describe-deliveries.ts";

it("says that the lag is that of the answering node, and that paused subscriptions are those of all nodes", () => {
  const lag = { events: 7, seconds: 17 };
  expect(describeDeliveries({ subscriptions: 1, held: { paused: 2, suspended: 0 }, lag })).toEqual({
    "Subscriptions delivered here": "1",
    "Lag of the slowest one here": "7 events, the oldest has waited 17 seconds",
    "Not delivered, on all nodes": "2 paused, 0 suspended, 0 locked",
  });
});
