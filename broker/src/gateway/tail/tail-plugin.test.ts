import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { BrokerError, formatEventId } from "@stele/wire";
import { expect, test } from "vitest";
import type { Event } from "../../domain/event.ts";
import { endOfBlock, toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Broker, EventOrigin, OriginSource, TailCall } from "../../engine/broker.ts";
import type { Delivery, Peer } from "../../engine/session/peer.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { sendRaw } from "../testing/raw-http.ts";
import { serve } from "../testing/serve.ts";
import { whenClosed } from "../testing/when-closed.ts";
import type { TailsOptions } from "./tails.ts";

const eventId = formatEventId({ topicDigest: "2cf24dba", sequence: 1, blockNumber: 3 });

function toDelivery(text: string, block = 3): Delivery {
  const event: Event = {
    topic: parseTopicName("orders/1"),
    sequence: 1,
    blockNumber: block,
    position: toPosition(block, 0),
    content: Buffer.from(text),
    extensions: [["svc-format", "json"]],
  };
  const id = formatEventId({ topicDigest: "2cf24dba", sequence: 1, blockNumber: block });
  return { event, eventId: id, qos: 0, ticket: undefined, isRepeated: false, filters: [] };
}

/** A broker that begins tails after block 2, and lets the test feed them. */
class Tailed {
  readonly calls: TailCall[] = [];
  readonly peers: Peer[] = [];
  readonly ended: string[] = [];
  woken = 0;
  tails = 0;
  startId = "@2";
  isRolledBack = false;
  isStuck = false;
  failure: Error | undefined;
  /** The origin that the chain gives; the test may delay it. */
  origin: Promise<EventOrigin> = Promise.resolve({ source: "eip155:7:0xabc", time: 0 });
  readonly origins: OriginSource = { find: () => undefined, load: () => this.origin };

  get peer(): Peer {
    const peer = this.peers.at(-1);
    if (peer === undefined) throw new Error("no tail is open");
    return peer;
  }

  readonly tail: Broker["tail"] = async (_caller, call, peer) => {
    if (this.failure !== undefined) throw this.failure;
    this.calls.push(call);
    this.peers.push(peer);
    const start = { id: this.startId, position: endOfBlock(2), isRolledBack: this.isRolledBack };
    call.onConnected({ wake: () => (this.woken += 1), isStuck: this.isStuck }, start, this.origins);
    return { end: async () => void this.ended.push(call.filters.join()) };
  };

  options(options: Partial<TailsOptions> = {}): TailsOptions {
    const metrics = {
      tailEnded: (reason: string) => void this.ended.push(reason),
      watchTails: (read: () => number) => Object.defineProperty(this, "tails", { get: read }),
    };
    return { tailsMax: 2, cloudEventType: "test", unread: new UnreadBytes(), metrics, random: () => 0.5, ...options };
  }
}

/** A raw connection that can wait for a text. */
class Client {
  readonly socket: Socket;
  text = "";

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect({ host: hostname, port: Number(port) });
    this.socket.setEncoding("utf8").on("data", (chunk: string) => (this.text += chunk));
  }

  ask(target: string, headers = ""): this {
    this.socket.write(`GET ${target} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`);
    return this;
  }

  async has(text: string): Promise<void> {
    while (!this.text.includes(text)) await once(this.socket, "data");
  }

  get body(): string {
    return this.text.slice(this.text.indexOf("\r\n\r\n") + 4);
  }
}

const sseHead = "retry: 2000\nid: @2\n\n";

test("writes events as Server-Sent Events until the client disconnects", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=orders/%23&topic=%2B/x&groupId=1&after=OFFSET_FIRST");
  await client.has(sseHead);
  expect(client.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  for (const header of ["content-type: text/event-stream", "cache-control: no-store, no-transform"]) {
    expect(client.text.toLowerCase()).toContain(`\r\n${header}\r\n`);
  }
  expect(client.text.toLowerCase()).toContain("\r\nx-accel-buffering: no\r\n");
  expect(client.text.toLowerCase()).toContain("\r\nconnection: close\r\n");
  expect(client.text.toLowerCase()).not.toContain("transfer-encoding");
  tailed.peer.deliver(toDelivery('{"n":1}'));
  await client.has("eyJuIjoxfQ");
  const data = `{"topic":"orders/1","content":"eyJuIjoxfQ==","extensions":{"svc-format":"json"},"eventId":"${eventId}"}`;
  expect(client.body).toBe(`${sseHead}id: ${eventId}\ndata: ${data}\n\n`);
  expect(tailed.calls).toMatchObject([
    { filters: ["orders/#", "+/x"], groupId: "1", after: "OFFSET_FIRST", lastEventId: undefined },
  ]);
  expect(tailed.tails).toBe(1);
  client.socket.destroy();
  await expect.poll(() => tailed.ended).toEqual(["orders/#,+/x"]);
  expect(tailed.tails).toBe(0);
});

test("writes JSON lines if the client accepts them, and passes Last-Event-ID to the broker", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url);
  client.ask("/tail?topic=a", `accept: application/x-ndjson\r\nlast-event-id: ${eventId}\r\n`);
  await client.has("\r\n\r\n");
  expect(client.text.toLowerCase()).toContain("content-type: application/x-ndjson");
  tailed.peer.deliver(toDelivery("x"));
  tailed.peer.rolledBack?.(endOfBlock(2), 0);
  await client.has("resync");
  const [line, ...rest] = client.body.split("\n");
  expect(JSON.parse(line ?? "")).toMatchObject({ eventId, content: "eA==" });
  expect(rest).toEqual(['{"resync":{"after":"@2","id":"@2"}}', ""]);
  expect(tailed.calls[0]?.lastEventId).toBe(eventId);
});

test("sends resync only if the client received the events that the chain removed", async () => {
  const tailed = new Tailed();
  tailed.isRolledBack = true;
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has("resync");
  tailed.peer.rolledBack?.(endOfBlock(2), 0);
  tailed.peer.deliver(toDelivery("x", 5));
  tailed.peer.rolledBack?.(toPosition(4, 7), 3);
  await client.has("@3");
  const frames = client.body.split("\n\n").filter((frame) => frame.includes("resync"));
  expect(frames).toEqual([
    'id: @2\nevent: resync\ndata: {"after":"@2","id":"@2"}',
    'id: @3.3\nevent: resync\ndata: {"after":"@3","id":"@3.3"}',
  ]);
});

test("leaves out events that the filter does not match, and heartbeats move the client's position past them", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options({ beatMs: 15 }) });
  const client = new Client(server.url).ask(`/tail?topic=a&filter=${encodeURIComponent("$.n == 2")}`);
  await client.has(":\n\n");
  tailed.peer.deliver(toDelivery('{"n":1}', 7));
  await client.has("id: 2cf24dba-1-7\n\n");
  tailed.peer.deliver(toDelivery('{"n":2}', 8));
  await client.has("id: 2cf24dba-1-8\ndata:");
  expect(client.body).not.toContain("id: 2cf24dba-1-7\ndata:");
});

test.each([
  ["/tail", 400, "topic"],
  ["/tail?topic=a&key=secret", 400, "there is no parameter"],
  ["/tail?topic=a&after=x&after=y", 400, "more than once"],
  ["/tail?topic=a&format=xml", 400, "is interface or cloudevents"],
  ["/tail?topic=a&filter=nonsense", 400, "is not a content filter: expected $"],
  ["/tail?topic=a&filter=", 400, "is not a content filter: expected $"],
  ["/tail?topic=a&filter=%20", 400, "is not a content filter: expected $"],
  ["/tail?topic=a&filter=$.a==%22caf%E9%22", 400, 'the parameter "filter" has a malformed escape'],
])("answers %s with %i", async (target, status, reason) => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const answer = await fetch(server.url + target);
  expect(answer.status).toBe(status);
  const text = await answer.text();
  expect(JSON.parse(text)).toEqual({ code: 200001, message: expect.stringContaining(reason) });
  expect(text).not.toContain("secret");
  expect(tailed.peers).toEqual([]);
});

test.each([
  ["credentialRefused", 401],
  ["accessDenied", 403],
  ["groupUnknown", 404],
  ["eventIdIllegal", 400],
  ["eventBeyondHead", 404],
  ["overQuota", 429],
  ["storeUnreachable", 503],
  ["busy", 503],
] as const)("answers %s with %i", async (name, status) => {
  const tailed = new Tailed();
  tailed.failure = new BrokerError(name);
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const answer = await fetch(`${server.url}/tail?topic=a`);
  expect(answer.status).toBe(status);
  expect(answer.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
  expect(await answer.json()).toHaveProperty("code");
  expect(tailed.tails).toBe(0);
});

test("answers HEAD with the stream's headers and no tail, OPTIONS with the methods", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const head = await fetch(`${server.url}/tail?topic=a`, { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  expect((await fetch(`${server.url}/tail`, { method: "HEAD" })).status).toBe(400);
  const options = await fetch(`${server.url}/tail`, { method: "OPTIONS" });
  expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
  expect((await fetch(`${server.url}/tail?topic=a`, { method: "POST" })).status).toBe(404);
  expect(tailed.peers).toEqual([]);
});

test("checks for each topic of a HEAD request whether the caller may subscribe to it", async () => {
  const tailed = new Tailed();
  const asked: unknown[] = [];
  const authorize: Broker["authorize"] = (caller, action, named) => {
    asked.push([caller.protocol, action, named]);
    if (named?.topic === "b") throw new BrokerError("credentialRefused");
  };
  await using server = await serve({ tail: tailed.tail, authorize }, { tail: tailed.options() });
  const head = await fetch(`${server.url}/tail?topic=a&topic=b&groupId=1`, { method: "HEAD" });
  expect([head.status, head.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  expect(asked).toEqual(["a", "b"].map((topic) => ["tail", "subscribe", { groupId: "1", topic }]));
});

const behind = "GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n";

test("closes the connection if a request follows a tail, because that request would never get an answer", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has(sseHead);
  const closed = whenClosed(client.socket);
  client.socket.write(behind);
  await closed;
  expect(client.body).toBe(sseHead);
  await expect.poll(() => tailed.ended).toEqual(["a"]);
  expect(server.calls).toEqual([]);
});

test("closes the connection if another request arrives in the same packet as a tail's", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url);
  const closed = whenClosed(client.socket);
  client.socket.write(`${behind.replace("/rest/exist", "/tail")}${behind}`);
  await closed;
  expect(server.calls).toEqual([]);
  expect(tailed.tails).toBe(0);
});

test("refuses a tail behind an unanswered request, and answers both requests", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const text = await sendRaw(server.url, [
    `${behind}${behind.replace("/rest/exist", "/tail").replace("host", "connection: close\r\nhost")}`,
  ]);
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\ntrueHTTP\/1\.1 400 [^]*this one has another unanswered request/);
  expect(tailed.peers).toEqual([]);
});

test("limits the number of open tails, and does not count tails that have ended", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options({ tailsMax: 1 }) });
  const first = new Client(server.url).ask("/tail?topic=a");
  await first.has(sseHead);
  const answer = await fetch(`${server.url}/tail?topic=a`);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { code: 200300, message: expect.stringContaining("1 tails are open at this node, and tailsMax allows no more") },
  ]);
  first.socket.destroy();
  await expect.poll(() => tailed.tails).toBe(0);
  await new Client(server.url).ask("/tail?topic=a").has(sseHead);
});

test("a stop of the server sends tails an end event and closes their connections", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has(sseHead);
  const ended = once(client.socket, "end");
  await server.close();
  await ended;
  expect(client.body).toBe(`${sseHead}event: end\ndata: {"reason":"stopping"}\n\n`);
  expect(tailed.ended).toEqual(["stopping", "a"]);
});

test("buffers a bounded number of bytes for a client that reads nothing, and ends its tail", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options({ beatMs: 30 }) });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has(sseHead);
  client.socket.pause();
  const long = "x".repeat(50_000);
  let given = 0;
  const fill = async (): Promise<void> => {
    for (; tailed.peer.hasRoom && tailed.ended.length === 0; given += 1) {
      tailed.peer.deliver(toDelivery(long, given + 5));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await fill();
  expect(given * long.length).toBeLessThan(32 * 1024 * 1024);
  await expect.poll(() => tailed.ended).toEqual(["stalled", "a"]);
});

test("ends a tail if the node cannot read its events at two consecutive heartbeats", async () => {
  const tailed = new Tailed();
  tailed.isStuck = true;
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options({ beatMs: 30 }) });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has('event: end\ndata: {"reason":"failed"}');
  expect(client.body.match(/^:$/gm)).toHaveLength(1);
  expect(tailed.ended).toEqual(["failed", "a"]);
});

test("wakes the session of a tail when its slow client reads again", async () => {
  const tailed = new Tailed();
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a");
  await client.has(sseHead);
  client.socket.pause();
  for (let given = 0; tailed.peer.hasRoom; given += 1) {
    tailed.peer.deliver(toDelivery("x".repeat(50_000), given + 5));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { woken } = tailed;
  client.socket.resume();
  await expect.poll(() => tailed.woken).toBeGreaterThan(woken);
  expect(tailed.peer.hasRoom).toBe(true);
});

test("ends the tail of a client that disconnected before the tail began", async () => {
  const tailed = new Tailed();
  let go: (() => void) | undefined;
  const tail: Broker["tail"] = async (...args) => {
    await new Promise<void>((resolve) => (go = resolve));
    return tailed.tail(...args);
  };
  await using server = await serve({ tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a");
  await expect.poll(() => go).toBeDefined();
  client.socket.resetAndDestroy();
  await once(client.socket, "close");
  await fetch(`${server.url}/health/live`); // after this the server has seen the end
  go?.();
  await expect.poll(() => tailed.ended).toEqual(["a"]);
  expect(tailed.tails).toBe(0);
});

test("writes a CloudEvent once its origin is loaded from the chain", async () => {
  const tailed = new Tailed();
  const origin = createDeferred<EventOrigin>();
  tailed.origin = origin.promise;
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a&format=cloudevents");
  await client.has(sseHead);
  tailed.peer.deliver(toDelivery('{\n"n": 1}'));
  expect(tailed.peer.hasRoom).toBe(false);
  origin.resolve({ source: "eip155:7:0xabc", time: Date.UTC(2026, 10, 23) });
  await client.has("data:");
  expect(tailed.peer.hasRoom).toBe(true);
  expect(tailed.woken).toBe(1);
  expect(JSON.parse(/^data: (.*)$/m.exec(client.body)?.[1] ?? "")).toEqual({
    specversion: "1.0",
    id: eventId,
    source: "eip155:7:0xabc",
    type: "test",
    subject: "orders/1",
    time: "2026-11-23T00:00:00.000Z",
    datacontenttype: "application/json",
    sequence: "0000000000000001",
    data: { n: 1 },
  });
});

test("does not send an event that the chain removes while its origin is being loaded", async () => {
  const tailed = new Tailed();
  const origin = createDeferred<EventOrigin>();
  tailed.origin = origin.promise;
  await using server = await serve({ tail: tailed.tail }, { tail: tailed.options() });
  const client = new Client(server.url).ask("/tail?topic=a&format=cloudevents");
  await client.has(sseHead);
  tailed.peer.deliver(toDelivery("gone", 5));
  tailed.peer.rolledBack?.(endOfBlock(2), 0);
  origin.resolve({ source: "eip155:7:0xabc", time: 0 });
  tailed.peer.deliver(toDelivery("other", 6));
  await client.has("2cf24dba-1-6");
  expect(client.body).not.toContain("2cf24dba-1-5");
});
