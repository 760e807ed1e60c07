import type { ServerResponse } from "node:http";
import { expect, it, vi } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { type LogFields, type Logger, silentLogger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import { EndpointSet } from "./endpoint-set.ts";
import { FakeNode } from "./testing/fake-node.ts";
import { FastClock } from "./testing/fast-clock.ts";

const stopped: Clock = { now: () => 0, monotonic: () => 0, after: () => () => {}, soon: () => {} };

async function createSet(nodes: readonly FakeNode[], clock: Clock, logger: Logger = silentLogger) {
  const addresses = nodes.map((node) => node.url());
  const set = new EndpointSet({ addresses, clock, logger, timeoutMs: 20_000 });
  await set.request({ method: "eth_any" });
  return set;
}

function askForPause(node: FakeNode): void {
  node.exchange = (_, response) => response.writeHead(429, { "retry-after": "3600" }).end();
}

const until = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 20_000, interval: 10 });

/** Sends a request that stays unanswered until the test calls the returned function, which returns the answer. */
async function sendEarly(set: EndpointSet, node: FakeNode): Promise<() => Promise<unknown>> {
  const late = createDeferred<unknown>();
  node.answer = ({ id }) => late.promise.then((result) => ({ id, result }));
  const asked = set.request({ method: "eth_late" });
  await until(() => expect(node.count("eth_late")).toBe(1));
  return async () => {
    late.resolve("answered");
    return asked;
  };
}

it("sends an endpoint nothing for as long as its Retry-After says", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = await createSet([first, second], new FastClock(25));
  askForPause(first);
  await set.request({ method: "eth_any" });
  first.exchange = undefined;
  const asked = first.requests.length;
  await until(() => expect(second.count("eth_blockNumber")).toBeGreaterThan(3));
  expect(first.requests).toHaveLength(asked);
  await set.close();
});

it("does not return to an endpoint during its Retry-After, even if it answers an earlier request", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = await createSet([first, second], stopped);
  const answer = await sendEarly(set, first);
  askForPause(first);
  await set.request({ method: "eth_any" });
  expect(await answer()).toBe("answered");
  const count = first.requests.length;
  await set.request({ method: "eth_any" });
  expect(first.requests).toHaveLength(count);
  await set.close();
});

it("sends nothing to the only endpoint during its Retry-After, and reports the Retry-After, even if the endpoint answers an earlier request", async () => {
  await using node = await FakeNode.start();
  const lines: string[] = [];
  const set = await createSet([node], stopped, { ...silentLogger, info: (message) => void lines.push(message) });
  const answer = await sendEarly(set, node);
  askForPause(node);
  await expect(set.request({ method: "eth_any" })).rejects.toThrow("answered HTTP 429");
  expect(await answer()).toBe("answered");
  const count = node.requests.length;
  await expect(set.request({ method: "eth_any" })).rejects.toMatchObject({ reach: "unreached" });
  expect(node.requests).toHaveLength(count);
  expect(set.failure()?.reason).toBe(`${node.url()}: answered HTTP 429, and asked to wait 3600 s`);
  expect(lines).not.toContain("chain endpoint answers again");
  await set.close();
});

/** A set of one endpoint, with a clock that `pass` moves. */
async function createTimedSet(node: FakeNode, logger: Logger = silentLogger) {
  let now = 0;
  const set = await createSet([node], { ...stopped, now: () => now, monotonic: () => now }, logger);
  return { set, pass: (ms: number): void => void (now += ms) };
}

async function expectPause(set: EndpointSet, node: FakeNode): Promise<void> {
  const count = node.requests.length;
  await expect(set.request({ method: "eth_any" })).rejects.toMatchObject({ reach: "unreached" });
  expect(node.requests).toHaveLength(count);
}

it("waits for a Retry-After that comes just after another failure, and reports the Retry-After", async () => {
  await using node = await FakeNode.start();
  const { set, pass } = await createTimedSet(node);
  const responses: ServerResponse[] = [];
  node.exchange = (_, response) => void responses.push(response);
  const refused = [1, 2].map(async () =>
    expect(set.request({ method: "eth_any" })).rejects.toMatchObject({ reach: expect.stringMatching(/^un/) }),
  );
  await until(() => expect(responses).toHaveLength(2));
  responses[0]?.writeHead(503).end();
  await Promise.race(refused);
  responses[1]?.writeHead(429, { "retry-after": "60" }).end();
  await Promise.all(refused);
  expect(set.failure()?.reason).toBe(`${node.url()}: answered HTTP 429, and asked to wait 60 s`);
  pass(59_000);
  await expectPause(set, node);
  await set.close();
});

it("waits for a Retry-After even if the endpoint then serves another chain", async () => {
  await using node = await FakeNode.start();
  const { set, pass } = await createTimedSet(node);
  const late = createDeferred<unknown>();
  node.answer = ({ id, method }) =>
    method === "eth_chainId" ? late.promise.then(() => ({ id, result: "0x2" })) : { id, result: node.chain.block() };
  set.doubtChain();
  const checking = expect(set.request({ method: "eth_any" })).rejects.toThrow("serves chain 2");
  await until(() => expect(node.count("eth_chainId")).toBe(2));
  askForPause(node);
  await expect(set.request({ method: "eth_any" })).rejects.toThrow("answered HTTP 429");
  node.exchange = undefined;
  late.resolve(undefined);
  await checking;
  pass(60_000);
  await expectPause(set, node);
  await set.close();
});

it("does not check the chain of an endpoint again after a rate limit", async () => {
  await using node = await FakeNode.start();
  const { set, pass } = await createTimedSet(node);
  askForPause(node);
  await expect(set.request({ method: "eth_any" })).rejects.toThrow("answered HTTP 429");
  node.exchange = undefined;
  pass(3_600_000);
  expect(await set.request({ method: "eth_any" })).toBe("eth_any");
  expect(node.count("eth_chainId")).toBe(1);
  await set.close();
});

it("does not report a full pool as a rate limit, even after an earlier rate limit", async () => {
  await using node = await FakeNode.start();
  const { set, pass } = await createTimedSet(node);
  askForPause(node);
  await expect(set.request({ method: "eth_any" })).rejects.toMatchObject({ isOverLimit: true });
  node.exchange = undefined;
  pass(3_600_000);
  node.answer = ({ id }) => ({ id, error: { code: -32000, message: "txpool is full" } });
  await expect(set.request({ method: "eth_sendRawTransaction" })).rejects.toMatchObject({ isOverLimit: false });
  await set.close();
});

it("does not report the earlier rate limit of an endpoint that lags now as the cause of another endpoint's failure", async () => {
  await using lagging = await FakeNode.start();
  await using other = await FakeNode.start();
  let now = 0;
  const set = await createSet([lagging, other], { ...stopped, monotonic: () => now });
  const ask = (): Promise<unknown> => set.request({ method: "eth_any" });
  const refuseAll = (): void => void (other.exchange = (_, response) => response.writeHead(401).end());
  askForPause(lagging);
  await ask();
  lagging.exchange = undefined;
  now += 3_600_000;
  refuseAll();
  await ask();
  other.exchange = undefined;
  other.chain.head = 200;
  now += 10_000;
  await set.requestAll([{ method: "eth_any" }], 200);
  refuseAll();
  await expect(ask()).rejects.toMatchObject({ isOverLimit: false });
  await set.close();
});

it("names the pause in the log when it leaves an endpoint because of its Retry-After", async () => {
  await using node = await FakeNode.start();
  const reasons: unknown[] = [];
  const warn = (_: string, fields: LogFields = {}): void => void reasons.push(fields["reason"]);
  const set = await createSet([node], stopped, { ...silentLogger, warn });
  askForPause(node);
  await expect(set.request({ method: "eth_any" })).rejects.toThrow("answered HTTP 429");
  expect(reasons).toEqual([`${node.url()}: answered HTTP 429, and asked to wait 3600 s`]);
  await set.close();
});

it("opens no WebSocket for its subscriber during the Retry-After of the only endpoint", async () => {
  await using node = await FakeNode.start();
  const clock = new FastClock(50);
  const set = new EndpointSet({ addresses: [node.url("ws")], clock, logger: silentLogger });
  await set.subscribeHeads?.(() => {});
  const asked = node.requests.length;
  const lostAt = clock.monotonic();
  node.acceptsWebSockets = false;
  node.drop();
  await until(() => expect(node.requests.length).toBeGreaterThanOrEqual(asked + 3));
  expect(clock.monotonic() - lostAt).toBeGreaterThan(2 * 7000);
  await set.close();
});
