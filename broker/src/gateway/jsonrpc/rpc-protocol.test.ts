import { BrokerError, type OperationName, operations } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { answer, post } from "../testing/rpc-client.ts";
import { type Served, serve, testBodyBytesMax } from "../testing/serve.ts";

const toError = (code: number, message?: string) => ({
  code,
  message: message ?? expect.any(String),
  data: { exceptionTypeName: "BrokerException", message: expect.any(String), code: expect.any(Number) },
});

/** Every request to this server must be refused. If one reaches its broker, the later tests fail too. */
let refusing: Served;
beforeAll(async () => void (refusing = await serve()));
afterAll(async () => refusing.close());

const call = (members: object) => ({ jsonrpc: "2.0", id: 1, method: "open", params: { topic: "a" }, ...members });

describe("JSON-RPC 2.0, section 4, request object", () => {
  it.each(["1", "", 0, -7, 1.5, null])("returns the id %j", async (id) => {
    await using server = await serve();
    expect(await answer(server.url, call({ id }))).toEqual({ jsonrpc: "2.0", id, result: "true" });
  });

  it.each([
    ["a string", "text", null],
    ["a number", 1, null],
    ["null", null, null],
    ["without jsonrpc", { method: "open", id: 1 }, 1],
    ["another version", call({ jsonrpc: "1.0" }), 1],
    ["a version that is a number", call({ jsonrpc: 2 }), 1],
    ["a method that is not a string", call({ method: 1 }), 1],
    ["without method", { jsonrpc: "2.0", id: "x" }, "x"],
    ["params that are text", call({ params: "bar" }), 1],
    ["params that are null", call({ params: null }), 1],
    ["an id that is an object", call({ id: {} }), null],
    ["an id that is true", call({ id: true }), null],
    ["an id of 2^53", call({ id: 2 ** 53 }), null],
    ["an invalid notification", { jsonrpc: "2.0", method: 1, params: "bar" }, null],
  ])("%s is -32600", async (_what, body, id) => {
    expect(await answer(refusing.url, JSON.stringify(body))).toEqual({
      jsonrpc: "2.0",
      id,
      error: toError(-32600, "Invalid Request"),
    });
    expect(refusing.calls).toEqual([]);
  });

  it.each(["opens", "", "constructor", "__proto__", "rpc.other", "OPEN"])("method %j is -32601", async (method) => {
    expect(await answer(refusing.url, call({ method }))).toMatchObject({ error: toError(-32601, "Method not found") });
  });
});

describe("JSON-RPC 2.0, section 4.1, notifications", () => {
  it("a notification runs and gets 204", async () => {
    await using server = await serve();
    const response = await post(server.url, { jsonrpc: "2.0", method: "open", params: { topic: "a" } });
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(server.calls).toHaveLength(1);
  });

  it.each([
    ["of an unknown method", { jsonrpc: "2.0", method: "nothing" }],
    ["with invalid params", { jsonrpc: "2.0", method: "open", params: {} }],
  ])("a notification %s gets 204 too", async (_what, body) => {
    await using server = await serve();
    expect((await post(server.url, body)).status).toBe(204);
  });
});

describe("JSON-RPC 2.0, section 4.2, parameters", () => {
  it.each<[string, OperationName, unknown, RegExp]>([
    ["missing", "open", {}, /"topic" is missing/],
    ["missing by position", "publish", ["a"], /"content" is missing/],
    ["no params at all", "open", undefined, /"topic" is missing/],
    ["null where required", "open", { topic: null }, /"topic" is missing/],
    ["a number for text", "open", { topic: 1 }, /"topic".*string/],
    ["a number for groupId", "open", { topic: "a", groupId: 1 }, /"groupId".*string/],
    ["text for a number", "list", { pageIndex: "0" }, /"pageIndex".*number/],
    ["a fraction for pageSize", "list", { pageSize: 1.5 }, /"pageSize"/],
    ["too many by position", "unSubscribe", ["s", "t"], /2 positional parameters, at most 1/],
    ["extensions that are text", "publish", { topic: "a", content: "YQ==", extensions: "x" }, /"extensions"/],
    ["an extension that is a number", "publish", { topic: "a", content: "YQ==", extensions: { "svc-a": 1 } }, /svc-a/],
    ["half a surrogate pair", "open", { topic: "\ud800" }, /"topic".*surrogate/],
    ["no Base64", "publish", { topic: "a", content: "a b!" }, /"content" is not Base64/],
    ["Base64 without padding", "publish", { topic: "a", content: "YQ" }, /"content" is not Base64/],
    ["URL-safe Base64", "publish", { topic: "a", content: "-_8=" }, /"content" is not Base64/],
    ["Base64 with a line end", "publish", { topic: "a", content: "YWFh\n" }, /"content" is not Base64/],
    ["Base64 with unused bits set", "publish", { topic: "a", content: "YR==" }, /"content" is not Base64/],
    ["Base64 cut", "publish", { topic: "a", content: "YWFhY" }, /"content" is not Base64/],
  ])("%s is -32602, and the message names the fault", async (...[, method, params, message]) => {
    expect(await answer(refusing.url, call({ method, params }))).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: {
        code: -32602,
        message: "Invalid params",
        data: { exceptionTypeName: "BrokerException", message: expect.stringMatching(message), code: 200001 },
      },
    });
    expect(refusing.calls).toEqual([]);
  });

  it("parameter names are case-sensitive", async () => {
    await using server = await serve();
    expect(await answer(server.url, call({ params: { Topic: "a" } }))).toMatchObject({ error: { code: -32602 } });
  });

  it("an extension named `__proto__` is plain data", async () => {
    await using server = await serve();
    const params = '{"topic":"a","content":"YQ==","extensions":{"__proto__":"p"}}';
    await answer(server.url, `{"jsonrpc":"2.0","id":1,"method":"publish","params":${params}}`);
    expect(server.calls[0]?.call).toMatchObject({ extensions: [["__proto__", "p"]] });
    expect(
      await answer(server.url, `{"jsonrpc":"2.0","id":1,"method":"publish","params":${params.replace('"p"', "{}")}}`),
    ).toMatchObject({ error: { code: -32602 } });
    expect({}).not.toHaveProperty("topic");
  });

  it("does not look up parameters in the prototype", async () => {
    await using server = await serve();
    const body = '{"jsonrpc":"2.0","id":1,"method":"open","params":{"__proto__":{"topic":"a"}}}';
    expect(await answer(server.url, body)).toMatchObject({ error: { code: -32602 } });
  });

  it("decodes every byte of Base64 content", async () => {
    await using server = await serve();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await answer(server.url, call({ method: "publish", params: ["a", null, bytes.toString("base64")] }));
    expect(server.calls[0]?.call).toMatchObject({ content: bytes });
  });
});

describe("JSON-RPC 2.0, section 6, batches", () => {
  it("answers every member but notifications, in order, bad members too", async () => {
    await using server = await serve({ exist: () => Promise.reject(new BrokerError("groupUnknown")) });
    const body = [
      call({ id: "1" }),
      { jsonrpc: "2.0", method: "open", params: { topic: "b" } },
      1,
      call({ id: 2, method: "nothing" }),
      call({ id: 3, method: "exist" }),
      [],
      call({ id: null }),
    ];
    expect(await answer(server.url, body)).toMatchObject([
      { id: "1", result: "true" },
      { id: null, error: { code: -32600 } },
      { id: 2, error: { code: -32601 } },
      { id: 3, error: { code: -32001, message: "unknown group", data: { code: 200211 } } },
      { id: null, error: { code: -32600 } },
      { id: null, result: "true" },
    ]);
    expect(server.calls).toHaveLength(3);
  });

  it("an empty batch is one -32600", async () => {
    await using server = await serve();
    expect(await answer(server.url, "[]")).toMatchObject({ id: null, error: { code: -32600 } });
  });

  it("a batch of notifications gets 204", async () => {
    await using server = await serve();
    const member = { jsonrpc: "2.0", method: "open", params: { topic: "a" } };
    const response = await post(server.url, [member, member]);
    expect([response.status, await response.text()]).toEqual([204, ""]);
    expect(server.calls).toHaveLength(2);
  });

  it("accepts 1000 members, and refuses a batch of 1001", async () => {
    await using server = await serve();
    const members = Array.from({ length: 1001 }, (_, id) => call({ id }));
    expect(await answer(server.url, members)).toMatchObject({ id: null, error: { code: -32600 } });
    expect(server.calls).toEqual([]);
    expect(await answer(server.url, members.slice(1))).toHaveLength(1000);
  });

  it("calls of a batch start in order, and at most 256 run at once", async () => {
    const started: string[] = [];
    const allowed = createDeferred<void>();
    let running = 0;
    let runningMost = 0;
    await using server = await serve({
      open: async (_, { topic }) => {
        started.push(topic);
        runningMost = Math.max(runningMost, (running += 1));
        if (running === 256) allowed.resolve();
        await allowed.promise;
        await new Promise(setImmediate);
        running -= 1;
        return true;
      },
    });
    const members = Array.from({ length: 600 }, (_, id) => call({ id, params: [`t${id}`] }));
    await answer(server.url, members);
    expect(started).toEqual(members.map(({ id }) => `t${id}`));
    expect(runningMost).toBe(256);
  });
});

function toNested(levels: number): string {
  return `${"[".repeat(levels)}${"]".repeat(levels)}`;
}

function toBody(extra: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"open","params":{"topic":"[{\\"","x":${extra}}}`;
}

describe("JSON-RPC over HTTP", () => {
  it.each([
    ["no JSON", '{"jsonrpc":'],
    ["a broken batch", '[{"jsonrpc":"2.0","method":"open"},'],
    ["an empty body", ""],
  ])("%s is -32700", async (_what, body) => {
    expect(await answer(refusing.url, body)).toEqual({
      jsonrpc: "2.0",
      id: null,
      error: toError(-32700, "Parse error"),
    });
  });

  it("invalid UTF-8 is -32700", async () => {
    await using server = await serve();
    const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', "latin1");
    const response = await fetch(`${server.url}/jsonrpc`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(await response.json()).toMatchObject({ error: toError(-32700) });
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "nonsense"])(
    "content type %s is -32600",
    async (type) => {
      const response = await post(refusing.url, call({}), { "content-type": type });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id: null, error: toError(-32600) });
      expect(refusing.calls).toEqual([]);
    },
  );

  it("a compressed body is -32600", async () => {
    await using server = await serve();
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    const response = await post(server.url, call({}), headers);
    expect(await response.json()).toMatchObject({ id: null, error: toError(-32600) });
    expect(server.calls).toEqual([]);
  });

  it("no content type is -32600", async () => {
    await using server = await serve();
    const body = new Blob([JSON.stringify(call({}))]);
    const response = await fetch(`${server.url}/jsonrpc`, { method: "POST", body });
    expect(await response.json()).toMatchObject({ error: toError(-32600) });
  });

  it.each(["application/json; charset=utf-8", "application/json-rpc", "APPLICATION/JSON"])(
    "content type %s is accepted",
    async (type) => {
      await using server = await serve();
      const response = await post(server.url, call({}), { "content-type": type });
      expect(await response.json()).toMatchObject({ result: "true" });
    },
  );

  it("a body over the limit is -32600", async () => {
    await using server = await serve();
    const body = JSON.stringify(call({ params: { topic: "x".repeat(testBodyBytesMax) } }));
    expect(await answer(server.url, body)).toMatchObject({ id: null, error: toError(-32600) });
  });

  it.each([
    ["id", '{"jsonrpc":"2.0","id":1,"id":2,"method":"open","params":{"topic":"a"}}'],
    ["parameter", '{"jsonrpc":"2.0","id":1,"method":"open","params":{"topic":"a","topic":"b"}}'],
    [
      "extension",
      '[{"jsonrpc":"2.0","id":1,"method":"publish","params":{"topic":"a","content":"YQ==","extensions":{"svc-x":"1","svc-x":"2"}}}]',
    ],
  ])("one %s given twice is -32600, and nothing runs", async (_what, body) => {
    await using server = await serve();
    expect(await answer(server.url, body)).toEqual({
      jsonrpc: "2.0",
      id: null,
      error: toError(-32600, "Invalid Request"),
    });
    expect(server.calls).toEqual([]);
  });

  it("a body is accepted up to 64 levels; deeper, or with over 100,000 values, it is -32700", async () => {
    await using server = await serve();
    expect(await answer(server.url, toBody(toNested(62)))).toMatchObject({ result: "true" });
    const asTopic = toBody("1").replace('"[{\\""', toNested(62));
    expect(await answer(server.url, asTopic)).toMatchObject({ error: { code: -32602 } });
    for (const body of [toBody(toNested(63)), "[".repeat(100_000), `[${"[],".repeat(60_000)}1]`]) {
      expect(await answer(server.url, body)).toMatchObject({ id: null, error: { code: -32700 } });
    }
  });

  it.each(["GET", "HEAD", "OPTIONS", "PUT"])("%s is 405", async (method) => {
    await using server = await serve();
    const response = await fetch(`${server.url}/jsonrpc`, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    const body = await response.text();
    if (method === "HEAD") expect(body).toBe("");
    else expect(JSON.parse(body)).toMatchObject({ error: { code: -32600 } });
  });

  it("rpc.discover answers the OpenRPC document", async () => {
    await using server = await serve();
    const { result } = (await answer(server.url, call({ method: "rpc.discover", params: undefined }))) as {
      result: { methods: { name: string }[] }; // Read just below.
    };
    expect(result.methods.map(({ name }) => name)).toEqual(Object.keys(operations));
  });
});
