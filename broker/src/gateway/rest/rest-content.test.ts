import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import type { PublishCall } from "../../engine/broker.ts";
import { sendRaw, toPost } from "../testing/raw-http.ts";
import { type Served, serve } from "../testing/serve.ts";

const contents: readonly string[] = [
  "%",
  "+",
  "a b",
  "&",
  "=",
  "a=b&c=d",
  "#",
  ";",
  "?",
  "\n\r\t",
  "\u0000",
  "😀 é ä 中",
  "%25%2B",
  '{"json":"\\u0000"}',
  "\ufeffbom",
  "__proto__",
];

const form = { "content-type": "application/x-www-form-urlencoded" };

function published(server: Served): PublishCall {
  return server.calls[0]?.call as PublishCall; // The only operation that these tests call.
}

describe("content is unchanged byte for byte", () => {
  it.each(contents)("%j", async (content) => {
    const fields = { topic: "a", content, "svc-x": content };
    const encoded = `topic=a&content=${encodeURIComponent(content)}&svc-x=${encodeURIComponent(content)}`;
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(fields) };
    for (const [path, init] of [
      [`/rest/publish?${encoded}`, {}],
      ["/rest/publish", { method: "POST", headers: form, body: encoded }],
      ["/rest/publish", json],
    ] as const) {
      await using server = await serve();
      await fetch(`${server.url}${path}`, init);
      expect(published(server).content).toEqual(Buffer.from(content, "utf8"));
      expect(published(server).extensions).toEqual([["svc-x", content]]);
    }
  });

  it("reads a plus as a space, and an escaped plus as a plus", async () => {
    await using server = await serve();
    await fetch(`${server.url}/rest/publish?topic=a&content=1+1%2B1`);
    expect(published(server).content).toEqual(Buffer.from("1 1+1"));
  });

  it("accepts the name `__proto__` like any other", async () => {
    await using server = await serve({}, { extensionPrefix: "__" });
    await fetch(`${server.url}/rest/publish`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"topic":"a","content":"c","__proto__":"p"}',
    });
    expect(published(server).extensions).toEqual([["__proto__", "p"]]);
  });

  it("returns an extension that is named `__proto__`", async () => {
    await using server = await serve({
      getEvent: () =>
        Promise.resolve({
          topic: "a",
          content: Buffer.from("c"),
          extensions: [["__proto__", "p"]],
          eventId: "e",
        } as never), // Fields that the answer does not read are left out.
    });
    const response = await fetch(`${server.url}/rest/getEvent?eventId=e`);
    expect(await response.text()).toBe('{"topic":"a","content":"Yw==","extensions":{"__proto__":"p"},"eventId":"e"}');
  });

  it("reads empty pairs and names without `=` as a form does", async () => {
    await using server = await serve();
    await fetch(`${server.url}/rest/publish?&&topic=a&content&=x&`);
    expect(published(server)).toMatchObject({ topic: "a", content: Buffer.from("") });
  });

  it.each([
    [
      '{"topic":"a","content":"c","extensions":{"svc-a":"1"},"svc-b":"2"}',
      [
        ["svc-a", "1"],
        ["svc-b", "2"],
      ],
    ],
    ['{"topic":"a","content":"c","extensions":{}}', []],
    ['{"topic":"a","content":"c","extensions":null}', []],
  ])("takes extensions as an object in JSON: %s", async (body, extensions) => {
    await using server = await serve();
    await fetch(`${server.url}/rest/publish`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(published(server).extensions).toEqual(extensions);
  });

  it("treats null in JSON as left out, and accepts numbers for integers", async () => {
    await using server = await serve();
    const body = '{"pageIndex":3,"pageSize":"7","groupId":null}';
    await fetch(`${server.url}/rest/list`, { method: "POST", headers: { "content-type": "application/json" }, body });
    expect(server.calls[0]?.call).toEqual({ pageIndex: 3, pageSize: 7, groupId: undefined });
  });
});

describe("requests as they arrive from the network", () => {
  const body = Buffer.from(`topic=a&content=${encodeURIComponent("ä+😀")}`);

  it("have complete bodies even if a body arrives in two parts, cut at any byte", async () => {
    await using server = await serve();
    const request = toPost("/rest/publish", body, form);
    for (let cut = request.length - body.length; cut < request.length; cut += 1) {
      await sendRaw(server.url, [request.subarray(0, cut), request.subarray(cut)]);
    }
    expect(server.calls).toHaveLength(body.length);
    for (const { call } of server.calls) expect(call).toMatchObject({ topic: "a", content: Buffer.from("ä+😀") });
  });

  it("have complete bodies in chunks of one byte", async () => {
    await using server = await serve();
    const raw = Buffer.from('{"topic":"a","content":"ä😀"}');
    const head =
      "POST /rest/publish HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    const chunks = [...raw].map((byte) =>
      Buffer.concat([Buffer.from("1\r\n"), Buffer.from([byte]), Buffer.from("\r\n")]),
    );
    await sendRaw(server.url, [`${head}transfer-encoding: chunked\r\n\r\n`, ...chunks, "0\r\n\r\n"]);
    expect(published(server).content).toEqual(Buffer.from("ä😀"));
  });

  it("are answered in order if they are pipelined", async () => {
    const order = ["1", "2", "3"];
    const gates = new Map<string, () => void>();
    await using server = await serve({
      // The first is answered last.
      exist: (_, { topic }) =>
        new Promise((resolve) => {
          gates.set(topic, () => {
            resolve(topic !== "2");
          });
          if (gates.size === order.length) for (const name of order.toReversed()) gates.get(name)?.();
        }),
    });
    const requests = order.map((topic) => `GET /rest/exist?topic=${topic} HTTP/1.1\r\nhost: localhost\r\n`);
    const response = await sendRaw(server.url, [`${requests.join("\r\n")}connection: close\r\n\r\n`]);
    expect(response.match(/\r\n\r\n(true|false)/g)).toEqual(["\r\n\r\ntrue", "\r\n\r\nfalse", "\r\n\r\ntrue"]);
  });

  it("are dropped without an error if the client resets the connection", async () => {
    await using server = await serve();
    const request = toPost("/rest/publish", body, { ...form, "content-length": String(body.length + 1) });
    const socket = connect({ port: Number(new URL(server.url).port), host: "127.0.0.1" });
    socket.write(request, () => socket.resetAndDestroy());
    await once(socket, "close");
    expect(await (await fetch(`${server.url}/rest/exist?topic=a`)).text()).toBe("true");
    expect(server.calls.map(({ operation }) => operation)).toEqual(["exist"]);
    expect(server.errors).toEqual([]);
  });
});

describe("subscribe returns a JSON string, or plain text if the client prefers it", () => {
  it.each([
    [undefined, "json"],
    ["*/*", "json"],
    ["text/plain", "text"],
    ["TEXT/PLAIN;charset=utf-8", "text"],
    ["application/json, text/plain, */*", "json"],
    ["text/plain, application/json", "json"],
    ["text/plain, */*", "text"],
    ["text/plain, */*; q=0.01", "text"],
    ["text/*", "text"],
    ["text/plain;q=0.5, application/json", "json"],
    ["text/plain, application/json;q=0.9", "text"],
    ["text/plain;q=0, */*", "json"],
    ["text/plain;q=0", "json"],
    ["text/html", "json"],
  ])("Accept: %s gives %s", async (accept, kind) => {
    await using server = await serve();
    const headers: Record<string, string> = accept === undefined ? {} : { accept };
    const response = await fetch(`${server.url}/rest/subscribe?topic=a&url=http://x`, { headers });
    const identifier = "0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11";
    expect(await response.text()).toBe(kind === "text" ? identifier : `"${identifier}"`);
    expect(response.headers.get("content-type")).toMatch(kind === "text" ? /^text\/plain/ : /^application\/json/);
  });
});
