import { expect, it, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { answerBytesMax } from "./answer.ts";
import { EndpointSet } from "./endpoint-set.ts";
import { Rpc } from "./rpc.ts";
import { FakeNode } from "./testing/fake-node.ts";
import { FastClock } from "./testing/fast-clock.ts";

/** Repeats a request until this node answers it. */
async function untilAnsweredBy(node: FakeNode, set: EndpointSet): Promise<void> {
  const check = async (): Promise<void> => {
    await set.request({ method: "eth_any" });
    expect(node.methods.at(-1)).toBe("eth_any");
  };
  await vi.waitFor(check, { timeout: 20_000, interval: 10 });
}

function createSet(nodes: readonly FakeNode[], speed = 25): EndpointSet {
  const addresses = nodes.map((node) => node.url());
  return new EndpointSet({ addresses, clock: new FastClock(speed), logger: silentLogger, timeoutMs: 20_000 });
}

/** Makes the node answer the method `broken` with `result`. Chain nodes answer "0x" if they have no number to return. */
function breakAnswer(node: FakeNode, broken: string, result: "0x" | null = "0x"): void {
  node.answer = ({ id, method }) => ({ id, result: method === broken ? result : node.chain.answer(method) });
}

/** Makes the chain node answer each transaction with an error. */
function breakSends(node: FakeNode, error: unknown): void {
  node.answer = ({ id, method }) =>
    method === "eth_sendRawTransaction" ? { id, error } : { id, result: node.chain.answer(method) };
}

it("leaves a lagging endpoint even if another endpoint returns no block number", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  await using third = await FakeNode.start();
  breakAnswer(third, "eth_blockNumber");
  const set = createSet([first, second, third]);
  await untilAnsweredBy(first, set);
  second.chain.head = 110;
  await untilAnsweredBy(second, set);
  await set.close();
});

it("detects by a health check that a chain of fewer blocks is served behind the same connection", async () => {
  await using node = await FakeNode.start();
  const set = new EndpointSet({ addresses: [node.url("ws")], clock: new FastClock(25), logger: silentLogger });
  await set.request({ method: "eth_any" });
  await vi.waitFor(() => expect(node.count("eth_blockNumber")).toBeGreaterThan(1), { timeout: 20_000, interval: 10 });
  Object.assign(node.chain, { head: 50, chainId: 7 });
  const check = (): void => expect(set.failure()?.reason).toMatch(/serves chain 7/);
  await vi.waitFor(check, { timeout: 20_000, interval: 10 });
  await expect(set.request({ method: "eth_sendRawTransaction" })).rejects.toThrow(/serves chain 7/);
  expect(node.count("eth_sendRawTransaction")).toBe(0);
  await set.close();
});

it.each([
  ["over HTTP", "http", true],
  ["over HTTP without batches", "http", false],
  ["over WebSocket", "ws", true],
] as const)(
  "names the refused method if an endpoint refuses one of several requests, %s",
  async (_, scheme, takesBatches) => {
    await using node = await FakeNode.start();
    node.takesBatches = takesBatches;
    const set = new EndpointSet({ addresses: [node.url(scheme)], clock: new FastClock(1), logger: silentLogger });
    await set.request({ method: "eth_any" });
    const filter = { address: `0x${"11".repeat(20)}`, signatures: [] } as const;
    for (const refused of ["eth_getBlockByNumber", "eth_getLogs"]) {
      node.answer = ({ id, method }) =>
        method === refused
          ? { id, error: { code: -32000, message: "odd" } }
          : { id, result: node.chain.answer(method) };
      await expect(new Rpc(set).logs({ from: 1, to: 2 }, filter)).rejects.toMatchObject({ message: `${refused}: odd` });
    }
    await set.close();
  },
);

it("does not check the chain before each request to an endpoint that closes the connection after each answer", async () => {
  await using node = await FakeNode.start();
  node.isClosing = true;
  const set = createSet([node], 1); // A health check in between would check the chain.
  for (let requests = 0; requests < 10; requests += 1) await set.request({ method: "eth_any" });
  expect([node.count("eth_any"), node.count("eth_chainId")]).toEqual([10, 1]);
  await set.close();
});

it("leaves an endpoint that refuses all requests, and returns to it once it answers again", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const addresses = [first.url("ws"), second.url("ws")];
  const set = new EndpointSet({ addresses, clock: new FastClock(25), logger: silentLogger });
  await untilAnsweredBy(first, set);
  first.answer = ({ id }) => ({ id, error: { code: -32600, message: "App is inactive" } });
  await untilAnsweredBy(second, set);
  expect(await set.request({ method: "eth_sendRawTransaction" })).toBe("eth_sendRawTransaction");
  first.answer = undefined;
  await untilAnsweredBy(first, set);
  await set.close();
});

it("does not doubt an endpoint that refuses only the health check", async () => {
  await using node = await FakeNode.start();
  const clock = new VirtualClock();
  const set = new EndpointSet({ addresses: [node.url("ws")], clock, logger: silentLogger });
  await set.request({ method: "eth_any" });
  const error = { code: -32603, message: "Internal error" };
  node.answer = ({ id, method }) =>
    method === "eth_blockNumber" ? { id, error } : { id, result: node.chain.answer(method) };
  for (let checks = 1; checks <= 3; checks += 1) {
    await clock.advance(5000);
    // The answers come in order, so the first of these requests ends after the check.
    for (let requests = 0; requests < 3; requests += 1) await set.request({ method: "eth_any" });
  }
  expect([node.count("eth_blockNumber"), node.count("eth_chainId")]).toEqual([3, 1]);
  await set.close();
});

it("uses an endpoint that returned no chain id as soon as it returns the right one", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  breakAnswer(first, "eth_chainId");
  const set = createSet([first, second]);
  await set.request({ method: "eth_any" });
  first.answer = undefined;
  first.drop();
  await untilAnsweredBy(first, set);
  await set.close();
});

it("asks another endpoint for logs if the first one answers everything except requests for logs", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  first.answer = ({ id, method }) =>
    method === "eth_getLogs" ? undefined : { id, result: first.chain.answer(method) };
  const set = createSet([first, second]);
  for (let count = 0; count < 10; count += 1) {
    expect(await set.request({ method: "eth_getLogs" })).toEqual([]);
    await untilAnsweredBy(first, set); // A health check finds that the endpoint answers other methods.
  }
  expect(first.count("eth_getLogs")).toBeLessThanOrEqual(3);
  await set.close();
});

function refuse(node: FakeNode, { refused, message }: { readonly refused: string; readonly message: string }): void {
  node.answer = ({ id, method }) =>
    method === refused ? { id, error: { code: 4444, message } } : { id, result: node.chain.answer(method) };
}

it.each([
  "eth_getLogs",
  "eth_getBlockByNumber",
  "eth_getTransactionReceipt",
  "eth_call",
  "eth_estimateGas",
  "eth_getBalance",
  "eth_getCode",
  "eth_getStorageAt",
])("asks another endpoint if the first one refuses %s, and reports the first refusal if all do", async (refused) => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  refuse(first, { refused, message: "pruned history unavailable" });
  const ask = async (): Promise<unknown> => set.request({ method: refused });
  expect(await ask()).toEqual(second.chain.answer(refused));
  refuse(second, { refused, message: "history expired" });
  await expect(ask()).rejects.toThrow("pruned history unavailable");
  expect(set.failure()).toBeUndefined();
  await set.close();
});

const log = { address: "0x", topics: [], data: "0x", blockNumber: "0x1", blockHash: "0x", transactionHash: "0x" };

it.each([
  ["null", null],
  ["an object", {}],
  ["a list of null", [null]],
  ["a log without an index", [log]],
  ["a log without a block", [{ ...log, logIndex: "0x0", blockNumber: null }]],
])("asks another endpoint for the logs if the first one returns %s", async (_, result) => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  const breakLogs = (node: FakeNode): void => {
    node.answer = ({ id, method }) => ({ id, result: method === "eth_getLogs" ? result : node.chain.answer(method) });
  };
  breakLogs(first);
  expect(await set.request({ method: "eth_getLogs" })).toEqual([]);
  const calls = [{ method: "eth_getBlockByNumber" }, { method: "eth_getLogs" }];
  expect(await set.requestAll(calls, 100)).toEqual([second.chain.block(), []]);
  breakLogs(second);
  await expect(set.request({ method: "eth_getLogs" })).rejects.toThrow(/returned no list of logs/);
  await set.close();
});

it("asks the next endpoint for promised logs if the first one returns none, and returns no logs if all return none", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  const call = { method: "eth_getLogs", isPromised: true };
  const calls = [{ method: "eth_getBlockByNumber" }, call];
  expect(await set.request(call)).toEqual([]);
  expect(await set.requestAll(calls, 100)).toEqual([first.chain.block(), []]);
  const logs = [{ ...log, logIndex: "0x0" }];
  second.answer = ({ id, method }) => ({
    id,
    result: method === "eth_getLogs" ? logs : second.chain.answer(method),
  });
  expect(await set.request(call)).toEqual(logs);
  expect(await set.requestAll(calls, 100)).toEqual([second.chain.block(), logs]);
  expect(await set.request({ method: "eth_getLogs" })).toEqual([]);
  second.answer = ({ id }) => ({ id, error: { code: -32000, message: "pruned" } });
  expect(await set.request(call)).toEqual([]);
  second.answer = ({ id }) => ({ id, error: { code: -32005, message: "block range too large" } });
  const range = { fromBlock: "0x1", toBlock: "0x2" };
  await expect(set.request({ ...call, params: [range] })).rejects.toThrow("block range too large");
  expect(await set.request({ ...call, params: [{ ...range, toBlock: "0x1" }] })).toEqual([]);
  await set.close();
});

it("asks the next endpoint for the final block if the first one has none, and returns none if no endpoint has one", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  breakAnswer(first, "eth_getBlockByNumber", null);
  expect(await new Rpc(set).findHeader("finalized")).toMatchObject({ number: 100 });
  breakAnswer(second, "eth_getBlockByNumber", null);
  expect(await new Rpc(set).findHeader("finalized")).toBeUndefined();
  await set.close();
});

it("accepts an empty range of logs from the next endpoint if the first one lacks the last block of the range", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  const filter = { address: `0x${"11".repeat(20)}`, signatures: [], isPromised: true } as const;
  breakAnswer(first, "eth_getBlockByNumber", null);
  expect(await new Rpc(set).logs({ from: 1, to: 100 }, filter)).toMatchObject({ logs: [], end: { number: 100 } });
  breakAnswer(second, "eth_getBlockByNumber", null);
  await expect(new Rpc(set).logs({ from: 1, to: 100 }, filter)).rejects.toMatchObject({ kind: "refused" });
  await set.close();
});

it("asks an endpoint that lags by a block for no logs of a range that it lacks", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  second.chain.head = 101;
  // Chain nodes refuse a range beyond their newest block, instead of only returning null for its last block.
  const error = { code: -32602, message: "block range extends beyond current head block" };
  const results: Readonly<Record<string, unknown>> = { eth_getBlockByNumber: { result: null }, eth_getLogs: { error } };
  first.answer = ({ id, method }) => ({ id, ...(results[method] ?? { result: first.chain.answer(method) }) });
  const filter = { address: `0x${"11".repeat(20)}`, signatures: [], isPromised: true } as const;
  expect(await new Rpc(set).logs({ from: 1, to: 101 }, filter)).toMatchObject({ logs: [], end: { number: 101 } });
  expect(first.count("eth_getLogs")).toBe(0);
  await set.close();
});

it("asks the next endpoint for a promised receipt that the first one does not have", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const method = "eth_getTransactionReceipt";
  first.answer = ({ id, method: asked }) => ({ id, result: asked === method ? null : first.chain.answer(asked) });
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  expect(await set.request({ method })).toBe(null);
  expect(await set.request({ method, isPromised: true })).toBe(second.chain.answer(method));
  await set.close();
});

it.each([{ result: null }, { error: { code: -32_601, message: "the method is not available" } }])(
  "asks the next endpoint whether it knows a transaction if the first one answers %j",
  async (answer) => {
    await using first = await FakeNode.start();
    await using second = await FakeNode.start();
    const method = "eth_getTransactionByHash";
    const answerWith =
      (node: FakeNode): NonNullable<FakeNode["answer"]> =>
      ({ id, method: asked }) =>
        asked === method ? { id, ...answer } : { id, result: node.chain.answer(asked) };
    first.answer = answerWith(first);
    const set = createSet([first, second]);
    await untilAnsweredBy(first, set);
    const rpc = new Rpc(set);
    expect(await rpc.knows("0x1", { isSent: true })).toBe(true);
    second.answer = ({ id, method: asked }) => ({ id, result: asked === method ? null : second.chain.answer(asked) });
    const asked = rpc.knows("0x1", { isSent: true });
    // An endpoint that fails may have the transaction.
    if ("error" in answer) await expect(asked).rejects.toThrow("the method is not available");
    else expect(await asked).toBe(false);
    await set.close();
  },
);

it("does not wait for promised logs of an endpoint that has not answered two requests for logs", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  second.answer = ({ id, method }) =>
    method === "eth_getLogs" ? undefined : { id, result: second.chain.answer(method) };
  const set = createSet([first, second], 5); // The second endpoint counts as late for twelve seconds of real time.
  await untilAnsweredBy(first, set);
  for (let count = 0; count < 3; count += 1) {
    expect(await set.request({ method: "eth_getLogs", isPromised: true })).toEqual([]);
    const checks = second.count("eth_blockNumber");
    const check = (): void => expect(second.count("eth_blockNumber")).toBeGreaterThan(checks); // So it is not on hold.
    await vi.waitFor(check, { timeout: 20_000, interval: 10 });
  }
  expect(second.count("eth_getLogs")).toBe(2);
  await set.close();
});

it("offers a transaction to the next endpoint if the first one fails with an internal error", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  const send = async (): Promise<unknown> => set.request({ method: "eth_sendRawTransaction" });
  breakSends(first, { code: -32603, message: "Internal error" });
  expect(await send()).toBe("eth_sendRawTransaction");
  breakSends(second, { code: -32000, message: "nonce too low" });
  await expect(send()).rejects.toMatchObject({ reach: "unknown" });
  breakSends(second, { code: -32000, message: "already known" }); // The first endpoint passed it on.
  await expect(send()).rejects.toThrow(/^already known$/);
  expect(set.failure()).toBeUndefined();
  await set.close();
});

it("offers a transaction to the next endpoint if the pool of the first one is full, and still reads from the first one", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  const set = createSet([first, second]);
  await untilAnsweredBy(first, set);
  breakSends(first, { code: -32000, message: "txpool is full" });
  const send = async (): Promise<unknown> => set.request({ method: "eth_sendRawTransaction" });
  for (let count = 1; count <= 5; count += 1) {
    expect(await send()).toBe("eth_sendRawTransaction");
    await set.request({ method: "eth_any" });
    expect(first.methods.at(-1)).toBe("eth_any");
  }
  breakSends(second, { code: -32000, message: "txpool is full" });
  await expect(send()).rejects.toMatchObject({ reach: "unreached" });
  expect(set.failure()).toBeUndefined();
  await set.close();
});

it.each(["http", "ws"] as const)(
  "counts a transaction as possibly sent if the answer to it over %s is too long",
  async (scheme) => {
    await using node = await FakeNode.start();
    const addresses = [node.url(scheme)];
    const set = new EndpointSet({ addresses, clock: new FastClock(25), logger: silentLogger, timeoutMs: 500_000 });
    const long = "x".repeat(answerBytesMax);
    node.answer = ({ id, method }) => ({
      id,
      result: method.startsWith("eth_send") ? long : node.chain.answer(method),
    });
    await expect(set.request({ method: "eth_sendRawTransaction" })).rejects.toMatchObject({ reach: "unknown" });
    await set.close();
  },
);
