import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import type { Connection } from "./connection.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
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

test("asks an endpoint that refused the last subscriber at once for the next one", async () => {
  const { subscription, endpoint, count } = await startRefused();
  expect(count().asked).toBe(1);
  subscription.close();
  await subscription.start(() => {}, endpoint);
  expect(count().asked).toBe(2);
});

/** A subscription at an endpoint whose newest block is block 5. */
function createSubscription(ask: (method: string) => Promise<unknown>) {
  const clock = new VirtualClock();
  const endpoint = new Endpoint(connection, clock);
  endpoint.head = 5;
  const head = { number: "0x5", hash: "0x1", parentHash: "0x2", timestamp: "0x1", gasLimit: "0x1" };
  const subscription = new HeadSubscription({
    clock,
    logger: silentLogger,
    ask: async (_, { method }) => ask(method),
    askAny: async () => head,
  });
  return { subscription, endpoint, clock, head };
}

test("reports the newest block to a subscriber that starts after another has ended", async () => {
  const { subscription, endpoint, head } = createSubscription(async () => "0x1");
  for (let subscriber = 0; subscriber < 2; subscriber += 1) {
    const heads: unknown[] = [];
    const end = await subscription.start((one) => heads.push(one), endpoint);
    await subscription.refresh(endpoint);
    await subscription.refresh(endpoint);
    expect(heads).toEqual([head]);
    await end();
  }
});

test.each([
  ["is requested", ["eth_subscribe"]],
  ["arrives", ["eth_subscribe", "eth_subscribe", "eth_unsubscribe"]],
])("leaves no subscription at the endpoint if the subscriber ends before a renewal %s", async (when, expected) => {
  const answer = createDeferred<unknown>();
  const asked: string[] = [];
  const { subscription, endpoint, clock } = createSubscription(async (method) => {
    asked.push(method);
    return asked.length === 1 ? "0x1" : answer.promise;
  });
  const end = await subscription.start(() => {}, endpoint);
  subscription.onLost(endpoint);
  const refreshed = subscription.refresh(endpoint);
  if (when === "arrives") await clock.settle();
  await end();
  answer.resolve("0x2");
  await refreshed;
  expect(asked).toEqual(expected);
});

test("keeps one subscription if the subscriber ends during a renewal and the next one begins", async () => {
  const unsubscribed = createDeferred<unknown>();
  const asked: string[] = [];
  const { subscription, endpoint, clock } = createSubscription(async (method) => {
    asked.push(method);
    return asked.length === 2 ? unsubscribed.promise : `0x${asked.length}`;
  });
  const end = await subscription.start(() => {}, endpoint);
  const renewed = subscription.refresh(new Endpoint(connection, clock));
  await end();
  const starting = subscription.start(() => {}, endpoint);
  unsubscribed.resolve(true);
  await Promise.all([starting, renewed]);
  expect(asked.filter((method) => method === "eth_subscribe")).toHaveLength(3);
  expect(asked.filter((method) => method === "eth_unsubscribe")).toHaveLength(2);
});

test("asks nothing of an endpoint that is down when its subscription ends", async () => {
  const asked: string[] = [];
  const { subscription, endpoint } = createSubscription(async (method) => {
    asked.push(method);
    return "0x1";
  });
  const end = await subscription.start(() => {}, endpoint);
  endpoint.onFailure(new EndpointError("node: connection refused", { reach: "unreached" }), endpoint.failures);
  await end();
  expect(asked).toEqual(["eth_subscribe"]);
});
