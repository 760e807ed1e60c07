import { afterEach, describe, expect, it, vi } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../../lib/logger.ts";
import type { Hash } from "../../../domain/topic.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { EndpointError } from "./endpoint-error.ts";
import { EndpointSet, type EndpointSetOptions } from "./endpoint-set.ts";
import { FakeNode } from "./testing/fake-node.ts";
import { FastClock } from "./testing/fast-clock.ts";

let sets: EndpointSet[] = [];
let nodes: FakeNode[] = [];
const lines: { message: string; fields: LogFields | undefined }[] = [];
const note = (message: string, fields?: LogFields): void => void lines.push({ message, fields });
const logger: Logger = { ...silentLogger, info: note, warn: note };

afterEach(async () => {
  await Promise.all(sets.map((set) => set.close()));
  await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
  sets = [];
  nodes = [];
  lines.length = 0;
});

async function startNodes<const Count extends 1 | 2 | 3>(count: Count) {
  const started = await Promise.all(Array.from({ length: count }, () => FakeNode.start()));
  nodes.push(...started);
  return started as unknown as Count extends 1 ? [FakeNode] : Count extends 2 ? [FakeNode, FakeNode] : FakeNode[]; // Its length is `count`.
}

function createSet(addresses: readonly string[], options: Partial<EndpointSetOptions> = {}): EndpointSet {
  // A faster clock would leave too little time to connect on a busy machine.
  const clock = new FastClock(25);
  const set = new EndpointSet({ addresses, clock, logger, timeoutMs: 20_000, ...options });
  sets.push(set);
  return set;
}

/** An endpoint that answers the check of its chain and loses all other requests, with a clock that `pass` moves. */
async function startHalfDead() {
  const [node] = await startNodes(1);
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, after: () => () => {}, soon: () => {} };
  const set = createSet([node.url()], { clock });
  await ask(set);
  node.answer = ({ id, method }) => {
    if (method === "eth_any") node.drop();
    return { id, result: node.chain.answer(method) };
  };
  const pass = (ms: number): void => void (now += ms);
  return { node, set, pass };
}

async function ask(set: EndpointSet, method = "eth_any"): Promise<unknown> {
  return set.request({ method });
}

const until = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 20_000, interval: 10 });

const noKey = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32_600, message: "Must be authenticated!" } });

describe("fail-over", () => {
  it.each([
    ["drops the connection", (node: FakeNode) => void (node.exchange = () => node.drop())],
    ["answers 429", (node: FakeNode) => void (node.exchange = (_, response) => response.writeHead(429).end())],
    ["answers 401", (node: FakeNode) => void (node.exchange = (_, response) => response.writeHead(401).end(noKey))],
    ["answers 503", (node: FakeNode) => void (node.exchange = (_, response) => response.writeHead(503).end())],
    ["answers garbage", (node: FakeNode) => void (node.exchange = (_, response) => response.end("<html>"))],
    [
      "reports a rate limit",
      (node: FakeNode) =>
        void (node.answer = ({ id }) => ({ id, error: { code: -32005, message: "request rate limited" } })),
    ],
  ])("if the first endpoint %s, uses the next, and the first again once it recovers", async (_, breakNode) => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()]);
    expect(await ask(set)).toBe("eth_any");
    expect(second.count("eth_any")).toBe(0);
    breakNode(first);
    for (let count = 1; count <= 3; count += 1) {
      expect(await ask(set)).toBe("eth_any");
      expect(second.count("eth_any")).toBe(count);
    }
    expect(set.failure()).toBeUndefined();
    first.exchange = undefined;
    first.answer = undefined;
    await until(async () => {
      await ask(set);
      expect(first.methods.at(-1)).toBe("eth_any");
    });
  });

  it("fails over to the next endpoint on timeout", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()], { timeoutMs: 500 });
    await ask(set);
    first.exchange = () => {};
    expect(await ask(set)).toBe("eth_any");
    expect(second.count("eth_any")).toBe(1);
  });

  it("asks the next endpoint first after one lost answer, even before a health check", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()], { clock: new VirtualClock() });
    await ask(set);
    first.exchange = () => first.drop();
    expect(await ask(set)).toBe("eth_any");
    const asked = first.requests.length;
    expect(await ask(set)).toBe("eth_any");
    expect(first.requests).toHaveLength(asked);
    expect(second.count("eth_any")).toBe(2);
  });

  it("asks an endpoint again soon if it loses requests but passes the check of its chain in between", async () => {
    const { node, set, pass } = await startHalfDead();
    for (let count = 1; count <= 8; count += 1) {
      await expect(ask(set)).rejects.toMatchObject({ reach: "unknown" });
      pass(250);
    }
    expect(node.count("eth_any")).toBe(9);
    node.answer = undefined;
    expect(await ask(set)).toBe("eth_any");
  });

  it("asks an endpoint ever less often if it answers only the checks of its chain", async () => {
    const { node, set, pass } = await startHalfDead();
    for (let count = 1; count <= 100; count += 1) {
      await expect(ask(set)).rejects.toThrow();
      pass(250);
    }
    expect(node.count("eth_any")).toBeLessThan(30);
  });

  it("does not fail over after an answer, even an error", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()]);
    await ask(set);
    first.answer = ({ id }) => ({ id, error: { code: -32000, message: "nonce too low" } });
    await expect(ask(set)).rejects.toMatchObject({ code: -32000 });
    expect(second.count("eth_any")).toBe(0);
  });

  it.each(["nonce too low", "insufficient funds for gas * price + value"])(
    "reports a transaction as unknown only if the first endpoint may have it and the next one refuses it: %s",
    async (message) => {
      const [first, second] = await startNodes(2);
      const set = createSet([first.url(), second.url()]);
      await ask(set);
      first.exchange = () => first.drop();
      second.answer = ({ id, method }) =>
        method === "eth_sendRawTransaction"
          ? { id, error: { code: -32000, message } }
          : { id, result: second.chain.answer(method) };
      await expect(ask(set, "eth_sendRawTransaction")).rejects.toMatchObject({ reach: "unknown" });
      first.exchange = (_, response) => response.writeHead(429).end();
      await expect(ask(set, "eth_sendRawTransaction")).rejects.toMatchObject({ code: -32000 });
    },
  );

  it("if all endpoints fail, reports 'unknown' if one may have the request, else 'unreached', with the reasons", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()]);
    first.exchange = (_, response) => response.writeHead(429).end();
    second.exchange = (_, response) => response.writeHead(401).end();
    const refused = await ask(set).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(EndpointError);
    expect(refused).toMatchObject({ reach: "unreached", isOverLimit: true, message: expect.stringContaining("; ") });
    expect(set.failure()?.reason).toContain("answered HTTP 401");

    const open = createSet([first.url(), second.url()]);
    first.exchange = () => first.drop();
    await expect(ask(open)).rejects.toMatchObject({ reach: "unknown" });
  });

  it("detects the end of an outage without a request, and logs start and end once", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()]);
    await ask(set);
    node.exchange = (_, response) => response.writeHead(429).end();
    await expect(ask(set)).rejects.toThrow();
    expect(set.failure()?.reason).toBe(`${node.url()}: answered HTTP 429`);
    await expect(ask(set)).rejects.toMatchObject({ isOverLimit: true }); // Also while the endpoint is on hold.
    await until(() => expect(node.requests.length).toBeGreaterThan(6));
    node.exchange = undefined;
    await until(() => expect(set.failure()).toBeUndefined());
    const about = lines.map(({ message }) => message);
    expect(about.filter((message) => message === "chain endpoint lost")).toHaveLength(1);
    expect(about.filter((message) => message === "chain endpoint answers again")).toHaveLength(1);
  });

  it.each([
    ["code", { code: 429, message: "no" }],
    ["text", { code: -32005, message: "request rate limited" }],
  ])("recognises a rate limit by an error's %s, while it checks the chain and later", async (_, error) => {
    const [node] = await startNodes(1);
    const refuse = ({ id }: { readonly id: number }) => ({ id, error });
    node.answer = refuse;
    await expect(ask(createSet([node.url()]))).rejects.toMatchObject({ isOverLimit: true });
    node.answer = undefined;
    const set = createSet([node.url("ws")]);
    await ask(set);
    node.answer = refuse;
    await expect(ask(set)).rejects.toMatchObject({ isOverLimit: true });
  });

  it("recognises a rate limit by the refusal of a WebSocket", async () => {
    const [node] = await startNodes(1);
    node.acceptsWebSockets = false;
    await expect(ask(createSet([node.url("ws")]))).rejects.toMatchObject({ isOverLimit: true });
  });

  it("hides user, password and keys of an address in messages and in the log", async () => {
    const [node] = await startNodes(1);
    node.exchange = (request, response) => response.writeHead(401).end(request.url);
    const set = createSet([node.url("http", "/v3/0123456789abcdef?key=abcdef0123").replace("//", "//bob:hunter2@")]);
    const failure = await ask(set).catch((error: unknown) => error);
    const said = JSON.stringify([String(failure), set.failure(), lines]);
    expect(said).toContain("HTTP 401");
    for (const secret of ["0123456789abcdef", "abcdef0123", "hunter2", "bob"]) expect(said).not.toContain(secret);
  });
});

describe("another chain", () => {
  it("checks the chain again if a request failed during an earlier check", async () => {
    const [node] = await startNodes(1);
    const clock = { now: () => 0, monotonic: () => 0, after: () => () => {}, soon: () => {} };
    const set = createSet([node.url()], { clock });
    const block = createDeferred<unknown>();
    node.answer = ({ id, method }) =>
      method === "eth_getBlockByNumber"
        ? block.promise.then((result) => ({ id, result }))
        : { id, result: node.chain.answer(method) };
    const asked = ask(set);
    await until(() => expect(node.count("eth_getBlockByNumber")).toBe(1));
    node.exchange = (_, response) => response.writeHead(503).end();
    await expect(ask(set)).rejects.toThrow("HTTP 503");
    node.exchange = undefined;
    node.answer = undefined;
    block.resolve(node.chain.block());
    expect(await asked).toBe("eth_any");
    node.chain.chainId = 2;
    await expect(ask(set)).rejects.toThrow("serves chain 2");
  });

  it.each([
    ["another id", { chainId: 2 }, /serves chain 2, and the group is on chain 1/],
    ["another first block", { genesis: `0x${"11".repeat(32)}` }, /with the same id 1: its first block is/],
  ])("does not use an endpoint with %s", async (_, difference, reason) => {
    const [first, second] = await startNodes(2);
    Object.assign(second.chain, difference);
    const set = createSet([first.url(), second.url()]);
    await ask(set);
    await first[Symbol.asyncDispose]();
    await expect(ask(set)).rejects.toThrow(reason);
    await until(() => expect(set.failure()?.reason).toMatch(reason));
    expect(set.failure()?.reason).toContain("the connection was refused");
    expect(second.count("eth_any")).toBe(0);
  });

  it("refuses an endpoint whose chain differs from the recorded or the configured one", async () => {
    const [node] = await startNodes(1);
    const genesisHash: Hash = `0x${"22".repeat(32)}`;
    const set = createSet([node.url()]);
    set.expectChain({ chainId: 1, genesisHash });
    await expect(ask(set)).rejects.toThrow(/the group's is 0x2222/);
    node.chain.genesis = genesisHash;
    await until(async () => expect(await ask(set)).toBe("eth_any"));
    await expect(ask(createSet([node.url()], { chainId: 5 }))).rejects.toThrow(/the group is on chain 5/);
  });

  it.each([1, 5])(
    "uses no endpoint, not even one of chain %i, if the recorded chain is not the configured one",
    async (chainId) => {
      const [node] = await startNodes(1);
      const set = createSet([node.url()], { chainId: 5 });
      set.expectChain({ chainId: 1, genesisHash: `0x${"00".repeat(32)}` });
      node.chain.chainId = chainId;
      await expect(ask(set, "eth_sendRawTransaction")).rejects.toThrow(
        `serves chain ${chainId}, and the group is on chain ${6 - chainId}`,
      );
      expect(node.count("eth_sendRawTransaction")).toBe(0);
    },
  );

  it("sends no transaction to an endpoint whose chain was replaced between two requests", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()], { clock: createSystemClock() });
    await ask(set);
    const { port } = node;
    await node[Symbol.asyncDispose]();
    const other = await FakeNode.start(port);
    nodes.push(other);
    other.chain.chainId = 7;
    await expect(ask(set, "eth_sendRawTransaction")).rejects.toThrow(/serves chain 7|other side closed|connection/);
    await expect(ask(set, "eth_sendRawTransaction")).rejects.toThrow();
    expect(other.count("eth_sendRawTransaction")).toBe(0);
  });

  it("checks the chain again after a lost answer, before it sends a transaction", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()], { clock: createSystemClock() });
    await ask(set);
    node.exchange = () => node.drop();
    await expect(ask(set)).rejects.toThrow();
    node.exchange = undefined;
    node.chain.chainId = 7;
    await expect(ask(set, "eth_sendRawTransaction")).rejects.toThrow(/serves chain 7/);
    expect(node.count("eth_sendRawTransaction")).toBe(0);
  });

  it("detects a replaced chain when the endpoint comes back", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()]);
    await ask(set);
    const { port } = node;
    await node[Symbol.asyncDispose]();
    await until(async () => expect(ask(set)).rejects.toThrow(/refused/));
    const other = await FakeNode.start(port);
    nodes.push(other);
    other.chain.chainId = 7;
    await until(() => expect(set.failure()?.reason).toMatch(/serves chain 7/));
    other.chain.chainId = 1;
    await until(async () => expect(await ask(set)).toBe("eth_any"));
  });
});

describe("requestAll", () => {
  const calls = [{ method: "a" }, { method: "b" }];

  it("sends all calls to the same endpoint, even if the first one fails", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()]);
    await ask(set);
    first.exchange = () => first.drop();
    expect(await set.requestAll(calls, 100)).toEqual(["a", "b"]);
    expect([first.count("a"), first.count("b"), second.count("a"), second.count("b")]).toEqual([0, 0, 1, 1]);
  });

  it("sends all calls in one HTTP request if the endpoint's head is known to be high enough", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()], { clock: createSystemClock() });
    await set.requestAll(calls, 100);
    const before = node.requests.length;
    await set.requestAll(calls, 100);
    expect(node.requests).toHaveLength(before + 1);
  });

  it("skips an endpoint that lacks the block, without marking it as down", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()], { clock: createSystemClock() });
    second.chain.head = 400;
    expect(await set.requestAll(calls, 400)).toEqual(["a", "b"]);
    expect([first.count("a"), second.count("a")]).toEqual([0, 1]);
    await expect(set.requestAll(calls, 401)).rejects.toMatchObject({ reach: "unreached" });
    expect(set.failure()).toBeUndefined();
    expect(first.count("a")).toBe(0);
  });

  it("checks the chain again if the endpoint's head has fallen, and fails while the head is too low", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()], { clock: createSystemClock() });
    await set.requestAll(calls, 100);
    node.chain.head = 50;
    await expect(set.requestAll(calls, 101)).rejects.toThrow(/its newest block is 50/);
    expect(set.failure()).toBeUndefined();
    Object.assign(node.chain, { head: 49, chainId: 7 });
    await expect(set.requestAll(calls, 101)).rejects.toThrow(/serves chain 7/);
    expect(set.failure()?.reason).toMatch(/serves chain 7/);
    await expect(ask(set, "eth_sendRawTransaction")).rejects.toThrow(/serves chain 7/);
    expect(node.count("eth_sendRawTransaction")).toBe(0);
  });
});

describe("lag", () => {
  it("skips an endpoint that lags until it has caught up, unless it is the only one left", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url(), second.url()]);
    await ask(set);
    second.chain.head = 110;
    await until(async () => {
      await ask(set);
      expect(second.methods.at(-1)).toBe("eth_any");
    });
    first.chain.head = 109;
    await until(async () => {
      await ask(set);
      expect(first.methods.at(-1)).toBe("eth_any");
    });
    second.chain.head = 200;
    await until(async () => {
      await ask(set);
      expect(second.methods.at(-1)).toBe("eth_any");
    });
    await second[Symbol.asyncDispose]();
    await until(async () => expect(await ask(set)).toBe("eth_any"));
  });
});
