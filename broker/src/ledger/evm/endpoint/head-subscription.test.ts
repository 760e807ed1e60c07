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

const block = (number: number) => ({
  number: `0x${number.toString(16)}`,
  hash: "0x1",
  parentHash: "0x2",
  timestamp: "0x1",
  gasLimit: "0x1",
});

/** A subscription at the first of two endpoints, whose newest block is block 5; `ask` answers requests for a subscription. */
function createSubscription(ask: (endpoint: Endpoint) => Promise<unknown>) {
  const clock = new VirtualClock();
  const endpoints = [new Endpoint(connection, clock), new Endpoint(connection, clock)] as const;
  for (const endpoint of endpoints) endpoint.head = 5;
  const state: { current: Endpoint; asked: number; lines: number } = { current: endpoints[0], asked: 0, lines: 0 };
  const subscription = new HeadSubscription({
    logger: { ...silentLogger, warn: () => void (state.lines += 1) },
    current: () => state.current,
    ask: async (endpoint) => {
      state.asked += 1;
      return ask(endpoint);
    },
    askAny: async () => block(5),
  });
  return { subscription, endpoints, state, clock };
}

test("asks an endpoint that refuses subscriptions again with each refresh, and logs the refusal once", async () => {
  const { subscription, state } = createSubscription(async () => {
    throw new RpcAnswerError("method not found", { code: -32_601 });
  });
  await subscription.start(() => {});
  for (let count = 0; count < 10; count += 1) await subscription.refresh();
  expect(state).toMatchObject({ asked: 11, lines: 1 });
  expect(subscription.isAttached).toBe(false);
});

test("asks an endpoint that lost two requests once a minute, and logs that once", async () => {
  const { subscription, state, clock } = createSubscription(async (endpoint) => {
    endpoint.onNoAnswer("eth_subscribe");
    throw new EndpointError("node: the connection was lost", { reach: "unknown" });
  });
  await subscription.start(() => {});
  for (let count = 0; count < 10; count += 1) await subscription.refresh();
  expect(state).toMatchObject({ asked: 2, lines: 1 });
  await clock.advance(60_000);
  for (let count = 0; count < 10; count += 1) await subscription.refresh();
  expect(state).toMatchObject({ asked: 3, lines: 1 });
});

test("reports the newest block to a subscriber that starts after another has ended", async () => {
  const { subscription } = createSubscription(async () => "0x1");
  for (let subscriber = 0; subscriber < 2; subscriber += 1) {
    const heads: unknown[] = [];
    const end = await subscription.start((one) => heads.push(one));
    await subscription.refresh();
    await subscription.refresh();
    expect(heads).toEqual([block(5)]);
    await end();
  }
});

test("asks an endpoint once while its answer is awaited, even if the subscriber ends and the next one begins", async () => {
  const answer = createDeferred<unknown>();
  const { subscription, state } = createSubscription(() => answer.promise);
  const first = subscription.start(() => {});
  await subscription.refresh();
  subscription.close();
  await subscription.start(() => {});
  answer.resolve("0x1");
  await first;
  expect(state.asked).toBe(1);
  expect(subscription.isAttached).toBe(true);
});

test.each([
  ["grants", () => "0x1"],
  ["refuses", () => Promise.reject(new RpcAnswerError("method not found", { code: -32_601 }))],
])(
  "reports no head twice and logs nothing if an endpoint %s the subscription after another came into use",
  async (_, late) => {
    const answer = createDeferred<void>();
    const { subscription, endpoints, state } = createSubscription(async (endpoint) =>
      endpoint === endpoints[0] ? answer.promise.then(late) : "0x2",
    );
    const heads: unknown[] = [];
    const started = subscription.start((head) => heads.push(head));
    state.current = endpoints[1];
    await subscription.onMoved();
    answer.resolve();
    await started;
    await subscription.refresh();
    expect(heads).toEqual([block(5)]);
    expect(state.lines).toBe(0);
  },
);

test("asks nothing for a subscriber that has ended", async () => {
  const { subscription, endpoints, state } = createSubscription(async () => "0x1");
  const end = await subscription.start(() => {});
  subscription.onLost(endpoints[0]);
  await end();
  await subscription.refresh();
  expect(state.asked).toBe(1);
});

test("subscribes at each endpoint once, and reports only heads of the endpoint in use", async () => {
  const { subscription, endpoints, state } = createSubscription(async () => "0x1");
  const heads: unknown[] = [];
  await subscription.start((head) => heads.push(head));
  for (const current of [endpoints[1], endpoints[0], endpoints[1]]) {
    state.current = current;
    await subscription.onMoved();
    heads.length = 0;
    for (const [index, endpoint] of endpoints.entries())
      subscription.onNotification(endpoint, { subscription: "0x1", result: block(6 + index) });
    expect(heads).toEqual([block(6 + endpoints.indexOf(current))]);
  }
  expect(state.asked).toBe(2);
});
