import { expect, test } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import type { Connection } from "./connection.ts";
import { RpcAnswerError } from "./endpoint-error.ts";
import { HeadSubscription } from "./head-subscription.ts";
import { Endpoint } from "./endpoint.ts";

const connection: Connection = {
  name: "node",
  canNotify: true,
  request: async () => undefined,
  requestAll: async () => [],
  close: async () => {},
};

/** Subscribes at an endpoint that refuses subscriptions; `count` returns how often it was asked, and how often the refusal was logged. */
async function startRefused() {
  const clock = new VirtualClock();
  const endpoint = new Endpoint(connection, clock);
  let asked = 0;
  let lines = 0;
  const subscription = new HeadSubscription({
    clock,
    logger: { ...silentLogger, info: () => void (lines += 1) },
    ask: async () => {
      asked += 1;
      throw new RpcAnswerError("method not found", { code: -32_601 });
    },
    askAny: async () => undefined,
  });
  await subscription.start(() => {}, endpoint);
  const refreshFor = async (minutes: number): Promise<void> => {
    for (let seconds = 0; seconds < minutes * 60; seconds += 5) {
      await clock.advance(5000);
      await subscription.refresh(endpoint);
    }
  };
  return { subscription, endpoint, refreshFor, count: () => ({ asked, lines }) };
}

test("logs once, and once more after each reconnect, that an endpoint refuses subscriptions", async () => {
  const { subscription, endpoint, refreshFor, count } = await startRefused();
  await refreshFor(10);
  expect(count()).toEqual({ asked: 11, lines: 1 });
  expect(subscription.isRenewable).toBe(false); // A refusal does not make health checks more frequent.
  subscription.onLost(endpoint);
  await refreshFor(1);
  expect(count()).toEqual({ asked: 12, lines: 2 });
});
