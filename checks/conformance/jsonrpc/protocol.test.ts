import { describe, expect, it } from "vitest";
import type { HttpAnswer } from "../../harness/http-client.ts";
import { useReceivers, useWorld } from "../../harness/use.ts";
import { embeddedWorld } from "../../harness/world.ts";
import { expectUnchanged } from "../unchanged.ts";

interface Response {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

const running = useWorld(embeddedWorld);
const json = { "content-type": "application/json" };

function post(body: string | Uint8Array, headers: Readonly<Record<string, string>> = json): Promise<HttpAnswer> {
  return running().client.http.send({ method: "POST", path: "/jsonrpc", headers, body });
}

async function ask(message: unknown): Promise<Response> {
  const answer = await post(JSON.stringify(message));
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toMatch(/^application\/json/);
  return answer.json() as Response; // Each test checks the shape.
}

async function askMany(messages: readonly unknown[]): Promise<readonly Response[]> {
  const answer = await post(JSON.stringify(messages));
  expect(answer.status).toBe(200);
  return answer.json() as readonly Response[]; // Each test checks the shape.
}

function expectError(response: Response, code: number, id: unknown): void {
  expect(response).toEqual({
    jsonrpc: "2.0",
    id,
    error: {
      code,
      message: expect.any(String),
      data: { exceptionTypeName: "BrokerException", message: expect.any(String), code: expect.any(Number) },
    },
  });
}

function toPublish(text: string, id: number): unknown {
  const params = { topic: "batched", content: Buffer.from(text).toString("base64") };
  return { jsonrpc: "2.0", method: "publish", params, id };
}

const exist = { jsonrpc: "2.0", method: "exist", params: { topic: "none" } };

describe("JSON-RPC 2.0, 4 Request object", () => {
  it("a request whose jsonrpc is missing or not exactly 2.0 returns -32600", async () => {
    for (const jsonrpc of ["1.0", "2", 2, null, true, "2.0 "]) {
      expectError(await ask({ ...exist, jsonrpc, id: 1 }), -32600, 1);
    }
    expectError(await ask({ method: "exist", params: { topic: "none" }, id: 1 }), -32600, 1);
  });

  it("a method that is missing or not a String returns -32600", async () => {
    for (const method of [1, null, ["exist"], { name: "exist" }, true]) {
      expectError(await ask({ ...exist, method, id: 1 }), -32600, 1);
    }
    expectError(await ask({ jsonrpc: "2.0", id: 1 }), -32600, 1);
  });

  it("an unknown method whose name begins with rpc. returns -32601, and rpc.discover returns the OpenRPC document", async () => {
    expectError(await ask({ jsonrpc: "2.0", method: "rpc.other", id: 1 }), -32601, 1);
    const { result } = await ask({ jsonrpc: "2.0", method: "rpc.discover", id: 1 });
    const { methods, openrpc } = result as { methods: { name: string }[]; openrpc: string }; // An OpenRPC document.
    expect(openrpc).toMatch(/^1\./);
    const names = ["open", "close", "exist", "publish", "subscribe", "unSubscribe", "getEvent", "list", "state"];
    expect(methods.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  });

  it("params may be omitted; params that are neither object nor array return -32600", async () => {
    expect(await ask({ jsonrpc: "2.0", method: "list", id: 1 })).toMatchObject({ id: 1, result: { pageIndex: 0 } });
    for (const params of ["topic", 1, true, null]) expectError(await ask({ ...exist, params, id: 1 }), -32600, 1);
  });

  it.each([["text"], [""], [0], [-7], [1.5], [9_007_199_254_740_991], ["9007199254740993"], ["\u0000é𝄞"]])(
    "id %j is a String or Number and is returned unchanged",
    async (id) => {
      expect(await ask({ ...exist, id })).toEqual({ jsonrpc: "2.0", id, result: "false" });
    },
  );

  it("a request with a Null id is answered with a Null id", async () => {
    expect(await ask({ ...exist, id: null })).toEqual({ jsonrpc: "2.0", id: null, result: "false" });
  });

  it("an id that is not a String, a Number or Null returns -32600 with a Null id", async () => {
    for (const id of [true, [1], { a: 1 }]) expectError(await ask({ ...exist, id }), -32600, null);
  });

  it("members that the specification does not name are ignored", async () => {
    // As text: in an object literal, `__proto__` sets the prototype.
    const answer = await post(`{"__proto__":null,"trace":"x",${JSON.stringify({ ...exist, id: 1 }).slice(1)}`);
    expect(answer.json()).toEqual({ jsonrpc: "2.0", id: 1, result: "false" });
  });
});

describe("JSON-RPC 2.0, 4.1 Notification", () => {
  it("a notification runs and MUST NOT be answered", async () => {
    const answer = await post(JSON.stringify({ jsonrpc: "2.0", method: "open", params: { topic: "notified" } }));
    expect(answer).toMatchObject({ status: 204, text: "" });
    expect(await running().client.exist("notified")).toBe(true);
  });

  it("a notification that fails MUST NOT be answered with an error", async () => {
    for (const message of [
      { jsonrpc: "2.0", method: "nothing" },
      { jsonrpc: "2.0", method: "open", params: { topic: "a+b" } },
      { jsonrpc: "2.0", method: "open", params: {} },
    ]) {
      expect(await post(JSON.stringify(message))).toMatchObject({ status: 204, text: "" });
    }
  });
});

describe("JSON-RPC 2.0, 4.2 Parameter structures", () => {
  it("parameters given by position are taken in the order in which the interface declares them", async () => {
    expect(await ask({ jsonrpc: "2.0", method: "open", params: ["by position", "1"], id: 1 })).toMatchObject({
      result: "true",
    });
    const content = Buffer.from("x").toString("base64");
    const params = ["by position", "1", content, { "svc-a": "b" }];
    const { result } = await ask({ jsonrpc: "2.0", method: "publish", params, id: 1 });
    const { eventId } = result as { eventId: string }; // A SendResult.
    expect(await ask({ jsonrpc: "2.0", method: "getEvent", params: [eventId], id: 1 })).toMatchObject({
      result: { content, extensions: { "svc-a": "b" } },
    });
  });

  it("more values by position than parameters return -32602", async () => {
    expectError(await ask({ jsonrpc: "2.0", method: "exist", params: ["a", "1", "x"], id: 1 }), -32602, 1);
  });

  it("the name of a method or parameter with other capitals is refused", async () => {
    expectError(await ask({ jsonrpc: "2.0", method: "exist", params: { Topic: "a" }, id: 1 }), -32602, 1);
    expectError(await ask({ jsonrpc: "2.0", method: "Exist", params: { topic: "a" }, id: 1 }), -32601, 1);
  });

  it.each<[string, unknown]>([
    ["exist", { topic: 1 }],
    ["exist", { topic: null }],
    ["exist", { topic: ["a"] }],
    ["exist", { topic: "a", groupId: 1 }],
    ["publish", { topic: "notified", content: 1 }],
    ["publish", { topic: "notified", content: { a: 1 } }],
    ["publish", { topic: "notified", content: "no base64!" }],
    ["publish", { topic: "notified", content: "eA" }],
    ["publish", { topic: "notified", content: "eB==" }],
    ["publish", { topic: "notified", content: "eA==\n" }],
    ["publish", { topic: "notified", content: "-_8=" }],
    ["publish", { topic: "notified", content: "eA==", extensions: "x" }],
    ["publish", { topic: "notified", content: "eA==", extensions: ["svc-a"] }],
    ["publish", { topic: "notified", content: "eA==", extensions: { "svc-a": 1 } }],
    ["publish", { topic: "notified", content: "eA==", extensions: { "svc-a": null } }],
    ["publish", { topic: "notified", content: "eA==", extensions: { "svc-a": "\ud800" } }],
    ["subscribe", { topic: "notified", url: 1 }],
    ["subscribe", { topic: "notified", url: "http://127.0.0.1:65535/", subscriptionId: 1 }],
    ["subscribe", { topic: "notified", url: "http://127.0.0.1:65535/", secret: 1 }],
    ["list", { pageIndex: "0", pageSize: 10 }],
    ["list", { pageIndex: 0, pageSize: "10" }],
    ["list", { pageIndex: 0, pageSize: 1.5 }],
    ["list", { pageIndex: 0, pageSize: true }],
    ["getEvent", { eventId: 1 }],
    ["unSubscribe", { subscriptionId: {} }],
  ])("%s with %j has an invalid value: -32602, and nothing changes", async (method, params) => {
    await running().client.open("notified");
    await expectUnchanged(running().client, async () => {
      expectError(await ask({ jsonrpc: "2.0", method, params, id: 1 }), -32602, 1);
    });
  });
});

describe("JSON-RPC 2.0, 5 Response object, and INTERFACE.md, Errors 2", () => {
  it("a success has result and no error, an error has error and no result", async () => {
    expect(Object.keys(await ask({ ...exist, id: 1 })).toSorted()).toEqual(["id", "jsonrpc", "result"]);
    const response = await ask({ jsonrpc: "2.0", method: "state", params: { topic: "none" }, id: 1 });
    expect(Object.keys(response).toSorted()).toEqual(["error", "id", "jsonrpc"]);
  });

  it("a topic that does not exist returns -32001 with the message topic not exist", async () => {
    const response = await ask({ jsonrpc: "2.0", method: "state", params: { topic: "none" }, id: "x" });
    expectError(response, -32001, "x");
    expect(response.error?.message).toBe("topic not exist");
    expect(response.error?.data["code"]).toBe(100101);
  });

  it("an unknown method returns -32601", async () => {
    for (const method of ["", "nothing", "toString", "__proto__", "constructor"]) {
      expectError(await ask({ jsonrpc: "2.0", method, id: 1 }), -32601, 1);
    }
  });

  it.each<[string, string | Uint8Array]>([
    ["an empty body", ""],
    ["a half object", '{"jsonrpc":"2.0","method":'],
    ["a half batch", '[{"jsonrpc":"2.0","method":"list","id":1}'],
    ["two objects", '{"jsonrpc":"2.0","method":"list","id":1}{}'],
    ["single quotes", "{'jsonrpc':'2.0'}"],
    ["a byte order mark alone", "\ufeff"],
    [
      "bytes that are not UTF-8",
      Buffer.from('{"jsonrpc":"2.0","method":"open","params":{"topic":"\xff\xfe"},"id":1}', "latin1"),
    ],
    ["a zero byte", "\u0000"],
    ["an array nested 100,000 deep and cut off", "[".repeat(100_000)],
  ])("%s is not JSON: -32700 with a Null id", async (_what, body) => {
    await expectUnchanged(running().client, async () => {
      expectError((await post(body)).json() as Response, -32700, null);
    });
  });

  it.each([["null"], ["1"], ['"text"'], ["true"]])(
    "%s is JSON but not a request: -32600 with a Null id",
    async (body) => {
      expectError((await post(body)).json() as Response, -32600, null);
    },
  );
});

describe("JSON-RPC 2.0, 6 Batch", () => {
  it("responses have the ids of their requests, even if some of the requests fail", async () => {
    const methods = ["list", "nothing", "state", "exist"];
    const responses = await askMany(
      methods.map((method, index) => ({ jsonrpc: "2.0", method, params: { topic: "none" }, id: index })),
    );
    expect(new Set(responses.map(({ id }) => id))).toEqual(new Set([0, 1, 2, 3]));
    const codes = responses.toSorted((a, b) => Number(a.id) - Number(b.id)).map(({ error }) => error?.code);
    expect(codes).toEqual([undefined, -32601, -32001, undefined]);
  });

  it("an empty batch is answered with one error, not with an array", async () => {
    expectError(await ask([]), -32600, null);
  });

  it("each member of a batch that is not a request is answered with an error and a Null id", async () => {
    const responses = await askMany([1, "two", null, [], {}]);
    expect(responses).toHaveLength(5);
    for (const response of responses) expectError(response, -32600, null);
  });

  it("an invalid member of a batch does not affect the valid members", async () => {
    const { client } = running();
    await client.open("batched");
    const bad = { jsonrpc: "2.0", method: "publish", params: { topic: "batched", content: "!" }, id: 2 };
    const responses = await askMany([toPublish("1", 1), bad, 7, toPublish("3", 3), { jsonrpc: "1.0" }]);
    expect(responses).toHaveLength(5);
    const good = responses.filter(({ result }) => result !== undefined);
    expect(good.map(({ id }) => id)).toEqual([1, 3]);
    expect((await client.state("batched")).sequenceNumber).toBe(2);
    expect(good.map(({ result }) => (result as { eventId: string }).eventId.split("-")[1])).toEqual(["1", "2"]);
  });

  it("notifications in a batch have no response; a batch of notifications only is answered with 204 and no body", async () => {
    const notification = { jsonrpc: "2.0", method: "open", params: { topic: "noted" } };
    const responses = await askMany([notification, { ...exist, id: 1 }]);
    expect(responses.map(({ id }) => id)).toEqual([1]);
    expect(await post(JSON.stringify([notification, notification]))).toMatchObject({ status: 204, text: "" });
  });

  it("a batch over the limit is answered with one error, and no member runs", async () => {
    const { client } = running();
    const members = Array.from({ length: 1001 }, (_, id) => ({
      jsonrpc: "2.0",
      method: "open",
      params: { topic: `many ${id}` },
      id,
    }));
    await expectUnchanged(client, async () => {
      expectError(await ask(members), -32600, null);
    });
  });
});

describe("INTERFACE.md, JSON-RPC interface", () => {
  const receive = useReceivers();

  it("a boolean result is the string true or false", async () => {
    expect(await ask({ jsonrpc: "2.0", method: "open", params: { topic: "said" }, id: 1 })).toMatchObject({
      result: "true",
    });
    expect(await ask({ ...exist, id: 1 })).toMatchObject({ result: "false" });
  });

  it("null for an optional parameter is the same as omitting it", async () => {
    const receiver = await receive();
    const params = {
      topic: "said",
      groupId: null,
      url: receiver.url,
      subscriptionId: null,
      offset: null,
      secret: null,
    };
    expect(await ask({ jsonrpc: "2.0", method: "subscribe", params, id: 1 })).toMatchObject({
      result: expect.stringMatching(/-/),
    });
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])(
    "content type %j is refused and nothing runs",
    async (type) => {
      await expectUnchanged(running().client, async () => {
        const body = JSON.stringify({ jsonrpc: "2.0", method: "open", params: { topic: "typed" }, id: 1 });
        const answer = await post(body, type === "" ? {} : { "content-type": type });
        expectError(answer.json() as Response, -32600, null);
      });
    },
  );

  it.each(["application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"])(
    "content type %s is accepted",
    async (type) => {
      expect((await post(JSON.stringify({ ...exist, id: 1 }), { "content-type": type })).json()).toMatchObject({
        result: "false",
      });
    },
  );

  it("the broker refuses a character set other than UTF-8", async () => {
    const answer = await post(JSON.stringify({ ...exist, id: 1 }), {
      "content-type": "application/json; charset=iso-8859-1",
    });
    expectError(answer.json() as Response, -32600, null);
  });

  it("a body over the limit is refused and nothing runs", async () => {
    const { client } = running();
    await client.open("long");
    const params = { topic: "long", content: Buffer.alloc(1_100_000).toString("base64") };
    await expectUnchanged(client, async () => {
      expectError(
        (await post(JSON.stringify({ jsonrpc: "2.0", method: "publish", params, id: 1 }))).json() as Response,
        -32600,
        null,
      );
    });
  });

  it.each(["GET", "PUT", "DELETE", "PATCH"] as const)("%s returns 405 and names POST as allowed", async (method) => {
    const answer = await running().client.http.send({ method, path: "/jsonrpc" });
    expect(answer.status).toBe(405);
    expect(answer.headers["allow"]).toBe("POST");
  });
});
