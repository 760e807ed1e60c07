import { describe, expect, it, vi } from "vitest";
import type { Caller } from "../../engine/access/caller.ts";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import {
  chainAnswerBytesMax,
  chainCallsWaitingMax,
  chainComputationsRunningMax,
  chainLookUpsRunningMax,
  jsonDepthMax,
  rpcBatchMax,
} from "../limits.ts";
import { createFakeBroker } from "../testing/fake-broker.ts";
import { type Served, serve } from "../testing/serve.ts";
import { ChainReader, type ChainSource } from "./chain-reader.ts";
import { readMethods } from "./read-methods.ts";

interface Request {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** A server over a chain with fixed answers, and the requests that the chain received. */
async function serveChain(answer: (request: Request) => unknown = () => "0x2a") {
  const requests: Request[] = [];
  const chain: ChainSource = {
    read: async (request) => {
      requests.push(request);
      return JSON.stringify((await answer(request)) ?? null);
    },
  };
  return { server: await serve({}, { chain }), requests };
}

function post(server: Served, body: unknown): Promise<Response> {
  const headers = { "content-type": "application/json" };
  return fetch(`${server.url}/chain`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function ask(server: Served, body: unknown): Promise<unknown> {
  const response = await post(server, body);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json; charset=utf-8"]);
  return response.json();
}

const call = (method: string, params?: unknown, id: number | string = 1) => ({ jsonrpc: "2.0", id, method, params });

/** An error of a provider, in the shape of EIP-1193. */
function refusal(code: number, message: string, data?: unknown): Error {
  return Object.assign(new Error(message), { code, data });
}

function nest(levels: number): unknown {
  return JSON.parse(`${"[".repeat(levels)}1${"]".repeat(levels)}`);
}

describe("the chain over HTTP", () => {
  it.each([...readMethods.keys()])("%s goes to the chain with its params", async (method) => {
    const { server, requests } = await serveChain();
    await using _ = server;
    expect(await ask(server, call(method, ["0x1", { a: null }], "x"))).toEqual({
      jsonrpc: "2.0",
      id: "x",
      result: "0x2a",
    });
    expect(requests).toEqual([{ method, params: ["0x1", { a: null }] }]);
  });

  it("params may be left out, and a missing result is null", async () => {
    const { server, requests } = await serveChain(() => undefined);
    await using _ = server;
    expect(await ask(server, call("eth_blockNumber"))).toEqual({ jsonrpc: "2.0", id: 1, result: null });
    expect(requests).toEqual([{ method: "eth_blockNumber", params: [] }]);
  });

  it.each([
    "eth_sendRawTransaction",
    "eth_sendTransaction",
    "eth_sign",
    "eth_subscribe",
    "eth_unsubscribe",
    "eth_newFilter",
    "eth_newBlockFilter",
    "eth_newPendingTransactionFilter",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_uninstallFilter",
    "debug_traceTransaction",
    "ETH_CALL",
    "constructor",
    "open",
    "",
  ])("%j is -32601: the endpoint is read-only", async (method) => {
    const { server, requests } = await serveChain();
    await using _ = server;
    const message = expect.stringMatching(/^the method .* does not exist\/is not available: .* is read-only$/);
    expect(await ask(server, call(method, []))).toEqual({ jsonrpc: "2.0", id: 1, error: { code: -32601, message } });
    expect(requests).toEqual([]);
  });

  it("named params are -32602", async () => {
    const { server, requests } = await serveChain();
    await using _ = server;
    const error = { code: -32602, message: "Invalid params: parameters go by position" };
    expect(await ask(server, call("eth_call", { to: "0x1" }))).toMatchObject({ error });
    expect(requests).toEqual([]);
  });

  it("accepts params as deep as JSON bodies may be", async () => {
    const { server } = await serveChain();
    await using _ = server;
    // The body's object is one level.
    const deepest = call("eth_getBalance", nest(jsonDepthMax - 1));
    expect(await ask(server, deepest)).toMatchObject({ result: "0x2a" });
    const tooDeep = call("eth_getBalance", nest(jsonDepthMax));
    expect(await ask(server, tooDeep)).toMatchObject({ error: { code: -32700 } });
  });

  it("a refusal of the chain keeps its code, message and data", async () => {
    const { server } = await serveChain(({ method }) => {
      throw method === "eth_call" ? refusal(3, "execution reverted: no", "0x08c3") : refusal(-32000, "unknown block");
    });
    await using _ = server;
    expect(await ask(server, call("eth_call", [{}]))).toMatchObject({
      error: { code: 3, message: "execution reverted: no", data: "0x08c3" },
    });
    const answer = await ask(server, call("eth_getLogs", [{}]));
    expect(answer).toEqual({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: "unknown block" } });
    expect(server.errors).toEqual([]);
  });

  it("a defect is -32603 and logged once, and its text is hidden", async () => {
    const defect = new TypeError("secret");
    const { server } = await serveChain(() => {
      throw defect;
    });
    await using _ = server;
    const error = { code: -32603, message: "Internal error: unknown error" };
    expect(await ask(server, call("eth_chainId"))).toEqual({ jsonrpc: "2.0", id: 1, error });
    expect(server.errors).toEqual([{ message: "request failed", fields: { operation: "eth_chainId", error: defect } }]);
  });

  it("an internal error of the chain is passed on and logged", async () => {
    const failure = refusal(-32603, "disk gone");
    const { server } = await serveChain(() => Promise.reject(failure));
    await using _ = server;
    expect(await ask(server, call("eth_chainId"))).toMatchObject({ error: { code: -32603, message: "disk gone" } });
    expect(server.errors).toEqual([
      { message: "chain call failed", fields: { method: "eth_chainId", error: failure } },
    ]);
  });

  it("a batch is answered in order, bad members too", async () => {
    const { server } = await serveChain(({ method }) => method);
    await using _ = server;
    const body = [call("eth_chainId"), 1, call("eth_sendRawTransaction", ["0x"], 2), call("net_version", [], 3)];
    expect(await ask(server, body)).toMatchObject([
      { id: 1, result: "eth_chainId" },
      { id: null, error: { code: -32600, message: "Invalid Request: a request is a JSON object" } },
      { id: 2, error: { code: -32601 } },
      { id: 3, result: "net_version" },
    ]);
  });

  it("invalid JSON is -32700, GET is 405, a notification 204 and does not run", async () => {
    const { server, requests } = await serveChain();
    await using _ = server;
    const headers = { "content-type": "application/json" };
    const broken = await fetch(`${server.url}/chain`, { method: "POST", headers, body: "{" });
    expect(await broken.json()).toMatchObject({ id: null, error: { code: -32700 } });
    expect((await fetch(`${server.url}/chain`)).status).toBe(405);
    expect((await post(server, { jsonrpc: "2.0", method: "eth_chainId" })).status).toBe(204);
    expect((await post(server, [{ jsonrpc: "2.0", method: "eth_chainId" }])).status).toBe(204);
    expect(requests).toEqual([]);
  });

  it("without a chain there is nothing at /chain, and the index does not name it", async () => {
    await using server = await serve();
    expect((await post(server, call("eth_chainId"))).status).toBe(404);
    expect(await (await fetch(server.url)).json()).not.toHaveProperty("chain");
  });

  it("the index names /chain below the base path", async () => {
    await using server = await serve({}, { basePath: "stele", chain: { read: () => Promise.resolve('"0x7"') } });
    expect(await (await fetch(server.url)).json()).toMatchObject({ chain: "/stele/chain" });
    expect(await ask(server, call("eth_chainId"))).toMatchObject({ result: "0x7" });
  });
});

describe("limits on calls of the chain", () => {
  it.each([
    ["eth_call", chainComputationsRunningMax],
    ["eth_getBalance", chainLookUpsRunningMax],
  ])("%s: at most %i calls run at once", async (method, runningMax) => {
    let running = 0;
    let runningMost = 0;
    const { server, requests } = await serveChain(async () => {
      runningMost = Math.max(runningMost, (running += 1));
      await new Promise(setImmediate);
      running -= 1;
    });
    await using _ = server;
    const batch = Array.from({ length: 40 }, (_, id) => call(method, [], id));
    await Promise.all([ask(server, batch), ask(server, batch)]);
    expect([runningMost, requests.length]).toEqual([runningMax, 80]);
  });

  it("computations wait in a bounded queue, and a look-up does not wait for them", async () => {
    const gate = createDeferred<string>();
    const source: ChainSource = {
      read: ({ method }) => (method === "eth_call" ? gate.promise : Promise.resolve('"0x1"')),
    };
    const reader = new ChainReader({ broker: createFakeBroker(), source, logger: silentLogger });
    const read = (method: string) => reader.call({ method, params: [], caller: testCaller });
    const taken = chainComputationsRunningMax + chainCallsWaitingMax;
    const calls = Array.from({ length: taken }, () => read("eth_call"));
    expect(await read("eth_call")).toMatchObject({ error: { code: -32005 } });
    expect(await read("eth_blockNumber")).toEqual({ json: '"0x1"' });
    gate.resolve('"0x2"');
    expect(await Promise.all(calls)).toEqual(calls.map(() => ({ json: '"0x2"' })));
  });

  it("after a long computation the next one waits for the same time, and look-ups run meanwhile", async () => {
    vi.useFakeTimers();
    try {
      const source: ChainSource = {
        read: async ({ method }, onWorked) => {
          if (method === "eth_call") onWorked(1_000);
          return '"0x1"';
        },
      };
      const reader = new ChainReader({ broker: createFakeBroker(), source, logger: silentLogger });
      const read = (method: string) => reader.call({ method, params: [], caller: testCaller });
      await read("eth_call");
      const answered: string[] = [];
      const next = read("eth_call").then(() => answered.push("computation"));
      vi.advanceTimersByTime(999);
      for (let count = 0; count < 40; count += 1) await read("eth_blockNumber").then(() => answered.push("look-up"));
      vi.advanceTimersByTime(1);
      await next;
      expect(answered).toEqual([...Array.from({ length: 40 }, () => "look-up"), "computation"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("after a short computation the next one runs at once, even if the short computation waited long for its turn, or failed", async () => {
    vi.useFakeTimers();
    try {
      const source: ChainSource = {
        read: async (_, onWorked) => {
          vi.advanceTimersByTime(1_000);
          onWorked(2);
          throw refusal(3, "execution reverted");
        },
      };
      const reader = new ChainReader({ broker: createFakeBroker(), source, logger: silentLogger });
      const read = () => reader.call({ method: "eth_call", params: [], caller: testCaller });
      const calls = [read(), read(), read()];
      expect(await Promise.all(calls)).toMatchObject(calls.map(() => ({ error: { code: 3 } })));
    } finally {
      vi.useRealTimers();
    }
  });

  it("a waiting call does not run once its caller is gone", async () => {
    const gate = createDeferred<string>();
    const requests: Request[] = [];
    const source: ChainSource = {
      read: (request) => {
        requests.push(request);
        return gate.promise;
      },
    };
    const reader = new ChainReader({ broker: createFakeBroker(), source, logger: silentLogger });
    const gone = new AbortController();
    const call = (caller: Caller) => reader.call({ method: "eth_call", params: [], caller });
    const first = call(testCaller);
    const second = call({ ...testCaller, signal: gone.signal });
    const third = call(testCaller);
    gone.abort();
    gate.resolve('"0x2"');
    expect(await Promise.all([first, second, third])).toMatchObject([
      { json: '"0x2"' },
      { error: { code: -32005 } },
      { json: '"0x2"' },
    ]);
    expect(requests).toHaveLength(2);
  });

  it("results beyond the size limit of the answer are -32003, and the waiting calls of the batch do not run", async () => {
    // Four results nearly fill the answer. The others are short, so that the test does not build results that are never sent.
    const fitting = 4;
    const [long, short] = ["x".repeat(chainAnswerBytesMax / fitting - 100), "x".repeat(1000)];
    const { server, requests } = await serveChain(() => (requests.length <= fitting ? long : short));
    await using _ = server;
    const batch = Array.from({ length: rpcBatchMax }, (_, id) => call("eth_getLogs", [], id));
    const answers = (await ask(server, batch)) as { result?: string; error?: { code: number } }[]; // A batch gets an array.
    expect(answers.map(({ error }) => error?.code)).toEqual(
      batch.map((_, index) => (index < fitting ? undefined : -32003)),
    );
    // One result does not fit, and the next call begins before the broker finds that out.
    expect(requests.length).toBeLessThanOrEqual(fitting + 2);
  });

  it("the data of reverts beyond the size limit of the answer are -32003 too, for a single call as well", async () => {
    const fitting = 4;
    const { server } = await serveChain(() => {
      throw refusal(3, "execution reverted", `0x${"0".repeat(chainAnswerBytesMax / fitting - 200)}`);
    });
    await using _ = server;
    const answers = (await ask(
      server,
      Array.from({ length: 2 * fitting }, (__, id) => call("eth_call", [], id)),
    )) as { error: { code: number } }[]; // A batch gets an array.
    expect(answers.map(({ error }) => error.code)).toEqual([3, 3, 3, 3, -32003, -32003, -32003, -32003]);
    const { server: other } = await serveChain(() => {
      throw refusal(3, "execution reverted", `0x${"0".repeat(chainAnswerBytesMax)}`);
    });
    await using __ = other;
    expect(await ask(other, call("eth_call"))).toMatchObject({ error: { code: -32003 } });
  });
});
