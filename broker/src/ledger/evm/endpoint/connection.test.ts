import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { Connection, Notification } from "./connection.ts";
import { EndpointError } from "./endpoint-error.ts";
import { createConnection } from "./create-connection.ts";
import { FakeNode } from "./testing/fake-node.ts";

/** Timeout of requests that get an answer, in milliseconds: longer than the fake nodes take. */
const timeoutDefaultMs = 20_000;
/** Timeout of requests that get no answer, in milliseconds. */
const timeoutMs = 500;
const call = { method: "eth_any" };
const calls = [{ method: "a" }, { method: "b" }];
let connections: Connection[] = [];
const notifications: Notification[] = [];
const lost: string[] = [];

function connect(address: string, timeoutMs = timeoutDefaultMs, clock = createSystemClock()): Connection {
  const connection = createConnection(address, {
    clock,
    timeoutMs,
    events: { onNotification: (value) => notifications.push(value), onLost: (reason) => lost.push(reason) },
  });
  connections.push(connection);
  return connection;
}

afterEach(async () => {
  await Promise.all(connections.map((connection) => connection.close()));
  connections = [];
  notifications.length = 0;
  lost.length = 0;
});

async function failureOf(request: Promise<unknown>): Promise<unknown> {
  return request.then(
    (value) => ({ answered: value }),
    (error: unknown) =>
      error instanceof EndpointError
        ? { reach: error.reach, message: error.message, retryAfterMs: error.retryAfterMs }
        : error,
  );
}

const errorBody = (code: number): string =>
  JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message: "no" } });

const saying = (text: string): unknown => expect.stringContaining(text);

describe.each(["http", "ws"] as const)("%s", (scheme) => {
  it("returns results, and the endpoint's errors with code and data", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url(scheme));
    expect(await connection.request(call)).toBe("eth_any");
    node.answer = ({ id }) => ({ jsonrpc: "2.0", id, error: { code: 3, message: "execution reverted", data: "0x08" } });
    expect(await failureOf(connection.request(call))).toMatchObject({
      code: 3,
      message: "execution reverted",
      data: "0x08",
    });
    node.answer = ({ id }) => ({ jsonrpc: "2.0", id, result: null });
    expect(await connection.request(call)).toBeNull();
  });

  it("a request fails as 'unreached' if the connection is refused or the host is unknown", async () => {
    const node = await FakeNode.start();
    const address = node.url(scheme);
    await node[Symbol.asyncDispose]();
    const failure = await failureOf(connect(address).request(call));
    expect(failure).toMatchObject({ reach: "unreached", message: saying("the connection was refused") });
    expect(await failureOf(connect(`${scheme}://nobody.invalid`).request(call))).toMatchObject({ reach: "unreached" });
  });

  it("a request fails as 'unknown' if no answer comes in time", async () => {
    await using node = await FakeNode.start();
    node.exchange = () => {};
    node.answer = () => undefined;
    const failure = await failureOf(connect(node.url(scheme), timeoutMs).request(call));
    expect(failure).toMatchObject({ reach: "unknown", message: saying(`no answer within ${timeoutMs} ms`) });
  });

  it("a request fails as 'unknown' if the connection is lost meanwhile, and the next request opens a new connection", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url(scheme));
    node.exchange = () => node.drop();
    node.answer = () => node.drop();
    expect(await failureOf(connection.request(call))).toMatchObject({ reach: "unknown" });
    node.exchange = undefined;
    node.answer = undefined;
    expect(await connection.request(call)).toBe("eth_any");
  });

  const garbage = ["no JSON", "[]", "{}", '"text"', "null", '{"jsonrpc":"2.0","id":1}'];
  it.each(garbage)("a request fails as 'unknown' if the answer is %s", async (text) => {
    await using node = await FakeNode.start();
    node.exchange = (_, response) => response.end(text);
    node.answer = () => text;
    expect(await failureOf(connect(node.url(scheme), timeoutMs).request(call))).toMatchObject({ reach: "unknown" });
  });

  it("sends user and password in a header, and hides them in messages", async () => {
    await using node = await FakeNode.start();
    const address = node.url(scheme).replace("://", "://alice:hunt%2Fer2@");
    const connection = connect(address);
    await connection.request(call);
    expect(node.requests[0]?.headers.authorization).toBe(`Basic ${Buffer.from("alice:hunt/er2").toString("base64")}`);
    node.answer = ({ id }) => ({ jsonrpc: "2.0", id, error: { code: 1, message: "no access for hunt/er2" } });
    const failure = await failureOf(connection.request(call));
    expect(failure).toMatchObject({ message: "no access for …" });
    expect(connection.name).not.toContain("hunt");
  });

  it("returns the answers of several requests in order, and fails if one request fails", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url(scheme));
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(1);
    node.answer = ({ id, method }) =>
      method === "b" ? { id, error: { code: -32000, message: "block range too large" } } : { id, result: method };
    expect(await failureOf(connection.requestAll(calls))).toMatchObject({ code: -32000 });
    node.answer = undefined;
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
  });

  it("returns the right answer to each of 100 concurrent requests", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url(scheme));
    const methods = Array.from({ length: 100 }, (_, index) => `m${index}`);
    expect(await Promise.all(methods.map((method) => connection.request({ method })))).toEqual(methods);
  });
});

describe("http", () => {
  it.each([
    [429, "unreached", "7"],
    [503, "unknown", "2"],
    [502, "unknown", undefined],
    [500, "unknown", undefined],
    [401, "unreached", undefined],
    [301, "unreached", undefined],
    [413, "too-large", undefined],
  ] as const)("a request that gets HTTP %i fails as '%s', with the requested pause", async (status, reach, wait) => {
    await using node = await FakeNode.start();
    const headers = wait === undefined ? {} : { "retry-after": wait };
    node.exchange = (_, response) => response.writeHead(status, headers).end("no");
    const failure = await failureOf(connect(node.url("http", "/v3/0123456789abcdef")).request(call));
    expect(failure).toEqual({
      reach,
      retryAfterMs: wait === undefined ? undefined : Number(wait) * 1000,
      message: `${node.url()}/…: answered HTTP ${status}`,
    });
  });

  it("returns the JSON-RPC error of an HTTP 400, 403 or 500, but only quotes that of a 401, 402 or 503, which a gateway sends", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url());
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: "nonce too low" } });
    for (const status of [400, 403, 500]) {
      node.exchange = (_, response) => response.writeHead(status).end(body);
      expect(await failureOf(connection.request(call))).toMatchObject({ code: -32000, message: "nonce too low" });
    }
    for (const [status, reach] of [
      [401, "unreached"],
      [402, "unreached"],
      [503, "unknown"],
    ] as const) {
      node.exchange = (_, response) => response.writeHead(status).end(body);
      const message = saying(`answered HTTP ${status}: nonce too low`);
      expect(await failureOf(connection.request(call))).toMatchObject({ reach, message });
    }
  });

  it("a request fails as 'unknown' if the socket closes in the middle of the answer", async () => {
    await using node = await FakeNode.start();
    node.exchange = (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write('{"jsonrpc":"2.0","id":1,', () => response.destroy());
    };
    expect(await failureOf(connect(node.url()).request(call))).toMatchObject({ reach: "unknown" });
  });

  it("accepts the answers to a batch in any order", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url());
    const b = { jsonrpc: "2.0", id: 2, result: "b" };
    node.exchange = (_, response) => response.end(JSON.stringify([b, { jsonrpc: "2.0", id: 1, result: "a" }]));
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(1);
  });

  it("sends several requests one by one to an endpoint that refuses batches", async () => {
    await using node = await FakeNode.start();
    node.takesBatches = false;
    const connection = connect(node.url());
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(3);
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(5);
  });

  it.each([
    ["HTTP 400", 400, "bad request"],
    ["HTTP 405", 405, ""],
    ["HTTP 400 and -32600", 400, errorBody(-32600)],
    ["HTTP 500 and -32600", 500, errorBody(-32600)],
    ["-32700", 200, errorBody(-32700)],
  ])(
    "sends single requests after the endpoint refused a batch with %s, and sends no further batch",
    async (_, status, body) => {
      await using node = await FakeNode.start();
      const connection = connect(node.url());
      node.exchange = (_request, response) => {
        node.exchange = undefined;
        response.writeHead(status).end(body);
      };
      expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
      expect(node.requests).toHaveLength(3);
      expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
      expect(node.requests).toHaveLength(5);
    },
  );

  it("sends batches again ten minutes after a refusal", async () => {
    await using node = await FakeNode.start();
    let now = 0;
    const clock = { ...createSystemClock(), monotonic: () => now };
    const connection = connect(node.url(), timeoutDefaultMs, clock);
    node.takesBatches = false;
    await connection.requestAll(calls);
    node.takesBatches = true;
    now = 599_999;
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(5);
    now = 600_000;
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(6);
  });

  it.each([
    ["HTTP 500", 500, "internal error"],
    ["HTTP 500 and -32603", 500, errorBody(-32603)],
    ["HTTP 503", 503, errorBody(-32600)],
    ["HTTP 404", 404, "not found"],
    ["-32603", 200, errorBody(-32603)],
    ["-32005", 200, errorBody(-32005)],
    ["garbage", 200, "<html>"],
  ])("sends batches as before after a batch failed with %s", async (_, status, body) => {
    await using node = await FakeNode.start();
    const connection = connect(node.url());
    node.exchange = (_request, response) => response.writeHead(status).end(body);
    await expect(connection.requestAll(calls)).rejects.toThrow();
    expect(node.requests).toHaveLength(1);
    node.exchange = undefined;
    expect(await connection.requestAll(calls)).toEqual(["a", "b"]);
    expect(node.requests).toHaveLength(2);
  });

  it("a batch fails as 'answer-too-long' if its answers exceed the endpoint's limit", async () => {
    await using node = await FakeNode.start();
    node.answer = ({ id }) => ({ id, error: { code: -32003, message: "response too large" } });
    const failure = await failureOf(connect(node.url()).requestAll([call, call]));
    expect(failure).toMatchObject({ reach: "answer-too-long" });
  });

  it("sends 20 successive requests on at most two connections", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url());
    for (let index = 0; index < 20; index += 1) await connection.request(call);
    // A request may start just before the connection of the previous one is free.
    expect(new Set(node.requests.map(({ socket }) => socket.remotePort)).size).toBeLessThanOrEqual(2);
  });

  it("answers other requests while 80 transactions get no answer", async () => {
    await using node = await FakeNode.start();
    const held = createDeferred<void>();
    node.answer = async ({ id, method }) => {
      if (method === "eth_sendRawTransaction") await held.promise;
      return { jsonrpc: "2.0", id, result: method };
    };
    const connection = connect(node.url("http"));
    const sends = Array.from({ length: 80 }, async () => connection.request({ method: "eth_sendRawTransaction" }));
    await expect.poll(() => node.count("eth_sendRawTransaction")).toBe(32);
    expect(await connection.request(call)).toBe("eth_any");
    held.resolve();
    await Promise.all(sends);
  });
});

describe("ws", () => {
  it("delivers notifications, and reports the loss of the connection once", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url("ws"));
    await connection.request({ method: "eth_subscribe" });
    node.notifyHead();
    await connection.request(call);
    expect(notifications).toEqual([{ subscription: "0xabc", result: node.chain.block() }]);
    node.answer = () => node.drop();
    await failureOf(connection.request(call));
    expect(lost).toHaveLength(1);
  });

  it("replaces a connection if nothing arrives before a request's timeout, and keeps it if a notification arrives", async () => {
    await using node = await FakeNode.start();
    const connection = connect(node.url("ws"), timeoutMs);
    await connection.request(call);
    node.answer = () => undefined;
    const late = failureOf(connection.request(call));
    node.notifyHead();
    expect(await late).toMatchObject({ reach: "unknown" });
    expect(node.requests).toHaveLength(1);
    await failureOf(connection.request(call));
    node.answer = undefined;
    expect(await connection.request(call)).toBe("eth_any");
    expect(node.requests).toHaveLength(2);
    expect(lost).toEqual([`${node.url("ws")}: no answer within ${timeoutMs} ms`]);
  });

  it("a request fails as 'unreached', with the requested pause, if the handshake is refused", async () => {
    await using node = await FakeNode.start();
    node.acceptsWebSockets = false;
    const failure = await failureOf(connect(node.url("ws")).request(call));
    expect(failure).toEqual({
      reach: "unreached",
      message: `${node.url("ws")}: answered HTTP 429`,
      retryAfterMs: 7000,
    });
  });
});

describe("ipc", () => {
  let servers: Server[] = [];
  afterEach(() => {
    for (const server of servers) server.close();
    servers = [];
  });

  async function listen(answer: (text: string) => readonly string[]): Promise<string> {
    const path = join(tmpdir(), `stele-ipc-${process.pid}-${servers.length}.sock`);
    const server = createServer((socket) => {
      socket.on("data", (chunk) => {
        const parts = answer(chunk.toString());
        for (const part of parts) socket.write(part);
        if (parts.length === 0) socket.destroy();
      });
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(path, resolve));
    return `ipc:${path}`;
  }

  it("reads a split answer, two messages in one chunk, and braces in strings", async () => {
    const address = await listen((text) => {
      const { id } = JSON.parse(text) as { id: number }; // A request of our own client.
      const note = { jsonrpc: "2.0", method: "eth_subscription", params: { subscription: "0x1", result: "}{" } };
      return [`${JSON.stringify(note)}\n{"jsonrpc":"2.0",`, `"id":${id},"result":"a}\\"{b"}\n`];
    });
    expect(await connect(address).request(call)).toBe('a}"{b');
    expect(notifications).toEqual([{ subscription: "0x1", result: "}{" }]);
  });

  it("a request fails as 'unknown' if the socket closes meanwhile, and as 'unreached' if there is no socket", async () => {
    expect(await failureOf(connect(await listen(() => [])).request(call))).toMatchObject({ reach: "unknown" });
    const failure = await failureOf(connect("ipc:/nowhere/geth.ipc").request(call));
    expect(failure).toMatchObject({ reach: "unreached", message: "ipc:/nowhere/geth.ipc: there is no such socket" });
  });
});
