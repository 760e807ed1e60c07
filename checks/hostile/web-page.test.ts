import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { codeOf } from "../harness/client.ts";
import { exchangeRaw, parseAnswer } from "../harness/raw-http.ts";
import { useReceivers, useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

/** The broker refuses after reading the head; a broken one waits for the body until its timeout of 30 s. */
const refusalMsMax = 15_000;
const bodyBytes = 2 ** 20;
/** Enough publishes to show a loop in the sequence number. */
const loopPublishes = 20;

interface Raw {
  readonly method?: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Without this member, the broker's own host. Undefined omits the header. */
  readonly host?: string | undefined;
  readonly version?: string;
  readonly body?: string;
}

/** The bytes of a request, as text. */
function toBytes(url: string, raw: Raw): string {
  const { method = "GET", target, headers = {}, version = "1.1", body = "" } = raw;
  const host = "host" in raw ? raw.host : new URL(url).host;
  const lines = Object.entries({
    ...(host === undefined ? {} : { host }),
    ...headers,
    connection: "close",
    ...(body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) }),
  });
  return `${method} ${target} HTTP/${version}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
}

async function ask(url: string, raw: Raw) {
  const text = await exchangeRaw(url, { pieces: [toBytes(url, raw)] });
  const answer = parseAnswer(text);
  if (answer === undefined) throw new Error(`no answer: ${text}`);
  return { ...answer, head: text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase() };
}

/** The answer to a refused caller, whatever it requested. */
const refused = {
  status: 403,
  body: expect.stringMatching(/^\{"code":100703,"message":"this origin or host may not call: /),
};

const publishTarget = "/rest/publish?topic=page&content=x";
const crossSite = { "sec-fetch-site": "cross-site" };
const form = { "content-type": "application/x-www-form-urlencoded" };
const evil = "http://evil.example";
const rpcPublish = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "publish",
  params: { topic: "page", content: "eA==" },
});
const subscribeAll = `/rest/subscribe?topic=%23&offset=OFFSET_FIRST&url=http%3A%2F%2F127.0.0.1%3A65535%2F`;

const attacks: readonly (readonly [string, Raw])[] = [
  [
    "an image",
    { target: publishTarget, headers: { ...crossSite, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" } },
  ],
  [
    "a link that is followed",
    { target: publishTarget, headers: { ...crossSite, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" } },
  ],
  [
    "a frame that subscribes to everything",
    { target: subscribeAll, headers: { ...crossSite, "sec-fetch-dest": "iframe" } },
  ],
  ["another port of this host", { target: publishTarget, headers: { "sec-fetch-site": "same-site" } }],
  [
    "a form",
    {
      method: "POST",
      target: "/rest/publish",
      headers: { ...crossSite, ...form, origin: evil },
      body: "topic=page&content=x",
    },
  ],
  [
    "a form of an older browser",
    { method: "POST", target: "/rest/publish", headers: { ...form, origin: evil }, body: "topic=page&content=x" },
  ],
  [
    "a form of a sandboxed frame",
    { method: "POST", target: "/rest/publish", headers: { ...form, origin: "null" }, body: "topic=page&content=x" },
  ],
  [
    "JSON-RPC as text/plain",
    { method: "POST", target: "/jsonrpc", headers: { "content-type": "text/plain", origin: evil }, body: rpcPublish },
  ],
  [
    "JSON-RPC as JSON after a preflight without an answer",
    {
      method: "POST",
      target: "/jsonrpc",
      headers: { "content-type": "application/json", origin: evil },
      body: rpcPublish,
    },
  ],
  [
    "https of the same host",
    {
      method: "POST",
      target: "/jsonrpc",
      headers: { "content-type": "application/json", origin: "https://127.0.0.1" },
      body: rpcPublish,
    },
  ],
  [
    "a preflight",
    { method: "OPTIONS", target: "/jsonrpc", headers: { origin: evil, "access-control-request-method": "POST" } },
  ],
  ["a page that uses DNS rebinding", { target: publishTarget, host: "evil.example:8080" }],
  [
    "a page that uses DNS rebinding, same-origin to the browser",
    {
      method: "POST",
      target: "/rest/publish",
      host: "evil.example",
      headers: { ...form, "sec-fetch-site": "same-origin", origin: evil },
      body: "topic=page&content=x",
    },
  ],
  ["a rebound name that begins like an address", { target: publishTarget, host: "127.0.0.1.evil.example" }],
  ["a rebound name that ends like localhost", { target: publishTarget, host: "notlocalhost" }],
  ["the unspecified address", { target: publishTarget, host: "0.0.0.0:8080" }],
  ["the unspecified address of IPv6", { target: publishTarget, host: "[::]:8080" }],
  ["loopback as IPv4 in IPv6", { target: publishTarget, host: "[::ffff:7f00:1]:8080" }],
  ["a user name before the host", { target: publishTarget, host: "evil.example@127.0.0.1" }],
  ["an empty host", { target: publishTarget, host: "" }],
  ["a foreign host in the request line", { target: `http://evil.example${publishTarget}` }],
  ["a foreign host beside a valid request line", { target: `http://127.0.0.1${publishTarget}`, host: "evil.example" }],
];

describe("a foreign web page", () => {
  const running = useWorld(embeddedWorld);
  beforeAll(async () => {
    await running().client.open("page");
  });

  it.each(attacks)("%s gets 403 and changes nothing", async (_name, raw) => {
    const { broker, client } = running();
    const before = await client.state("page");
    expect(await ask(broker.url, raw)).toMatchObject(refused);
    expect(await client.state("page")).toEqual(before);
    expect(Object.values(await client.listSubscriptions())).toEqual([{}]);
  });

  it("a request with two Host headers gets 400 and changes nothing", async () => {
    const { broker, client } = running();
    const before = await client.state("page");
    const raw = { target: publishTarget, headers: { Host: "evil.example" } };
    expect(await ask(broker.url, raw)).toMatchObject({
      status: 400,
      body: expect.stringContaining("more than one Host header"),
    });
    expect(await client.state("page")).toEqual(before);
  });

  it.each([
    "/",
    "/metrics",
    "/access",
    "/health/live",
    "/health/ready",
    "/openapi.json",
    "/asyncapi.json",
    "/admin/listSubscription",
    "/admin/v1/subscriptions",
    "/admin/v1/roles",
    "/chain",
    "/tail?topic=a",
    "/mqtt",
    "/stomp",
    "/console/logout",
    "/console/login/acme",
    "/console/callback/acme?code=a&state=b",
    "/nothing",
    "/rest/nothing",
    "/rest/exist?topic=%zz",
    "*",
  ])("a foreign web page is refused by %s", async (target) => {
    const { url } = running().broker;
    const method = target === "*" ? "OPTIONS" : "GET";
    for (const raw of [{ headers: crossSite }, { headers: { origin: evil } }, { host: "evil.example" }])
      expect(await ask(url, { method, target, ...raw })).toMatchObject(refused);
  });

  it("a foreign web page is refused, and its connection closed, before its request body has arrived", async () => {
    const { url } = running().broker;
    const head = toBytes(url, { method: "POST", target: "/jsonrpc", headers: { origin: evil } });
    const started = performance.now();
    const text = await exchangeRaw(url, {
      pieces: [head.replace("\r\n\r\n", `\r\ncontent-length: ${bodyBytes}\r\n\r\n{`)],
    });
    expect(parseAnswer(text)).toMatchObject(refused);
    expect(performance.now() - started).toBeLessThan(refusalMsMax);
  });

  it("a refusal of a foreign web page names the setting that would allow the request", async () => {
    const { url } = running().broker;
    expect((await ask(url, { target: "/", host: "broker.internal" })).body).toContain("STELE_ALLOWED_HOSTS");
    expect((await ask(url, { target: "/", headers: { origin: evil } })).body).toContain("STELE_ALLOWED_ORIGINS");
  });
});

describe("a request that no foreign web page makes", () => {
  const running = useWorld(embeddedWorld, {
    env: {
      STELE_ADVERTISED_ADDRESS: "node-1.internal:8080",
      STELE_ALLOWED_HOSTS: "Events.example.org,*.cluster.local",
    },
  });
  const target = "/rest/exist?topic=page";
  const hosts = [
    "127.0.0.1",
    "127.0.0.1:1",
    "10.1.2.3:8080",
    "[::1]:8080",
    "[fd00::5]",
    "localhost:8080",
    "LOCALHOST",
    "localhost.",
    "app.localhost:3",
    "node-1.internal",
    "node-1.internal:9",
    "events.example.org:443",
    "a.b.cluster.local",
  ];
  const refusedHosts = [
    "cluster.local",
    "example.org",
    "x.events.example.org",
    "node-1.internal.evil.example",
    "2130706433",
  ];
  const good: readonly (readonly [string, Raw])[] = [
    ["curl", { target }],
    ["a typed address or a bookmark", { target, headers: { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" } }],
    ["a page of the broker itself", { target, headers: { "sec-fetch-site": "same-origin" } }],
    [
      "a page of the broker itself behind TLS",
      {
        method: "POST",
        target,
        host: "events.example.org",
        headers: { "sec-fetch-site": "same-origin", origin: "https://events.example.org" },
      },
    ],
    ["a health check over HTTP/1.0 without a host", { target, version: "1.0", host: undefined }],
    ["a proxy that names the host in the request line", { target: `http://127.0.0.1${target}` }],
    ...hosts.map((host) => [`host ${host}`, { target, host }] as const),
  ];

  it.each(good)("the broker serves a request of this kind: %s", async (_name, raw) => {
    expect(await ask(running().broker.url, raw)).toMatchObject({ status: 200, body: "false" });
  });

  it("the broker serves a page of its own origin", async () => {
    const { url } = running().broker;
    expect(await ask(url, { method: "POST", target, headers: { origin: url } })).toMatchObject({
      status: 200,
      body: "false",
    });
  });

  it.each(refusedHosts)("a request that names the host %s, which is not allowed, is refused", async (host) => {
    expect(await ask(running().broker.url, { target, host })).toMatchObject(refused);
  });
});

describe("a page of an allowed origin", () => {
  const origin = "https://console.example.org";
  const running = useWorld(embeddedWorld, { env: { STELE_ALLOWED_ORIGINS: `${origin},http://localhost:3000` } });
  const page = { ...crossSite, origin };

  it.each(["GET", "POST"])(
    "a page of an allowed origin may %s and read the answer, without credentials",
    async (method) => {
      const { status, head } = await ask(running().broker.url, {
        method,
        target: "/rest/state?topic=none",
        headers: page,
      });
      expect(status).toBe(200);
      expect(head).toContain(`\r\naccess-control-allow-origin: ${origin}\r\n`);
      expect(head).toContain("\r\naccess-control-expose-headers: stele-error-retry, retry-after, stele-secret\r\n");
      expect(head).toMatch(/\r\nvary: origin(, accept)?\r\n/);
      expect(head).not.toContain("credentials");
    },
  );

  it.each(["/jsonrpc", "/rest/publish", "/chain", "/nothing"])(
    "a page of an allowed origin gets an answer to its preflight of %s",
    async (target) => {
      const asked = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "Content-Type,traceparent,x-secret",
      };
      const headers = { ...page, ...asked, "access-control-request-private-network": "true" };
      const { status, head, body } = await ask(running().broker.url, { method: "OPTIONS", target, headers });
      expect({ status, body }).toEqual({ status: 204, body: "" });
      expect(head).toContain(`access-control-allow-origin: ${origin}\r\n`);
      expect(head).toContain("access-control-allow-methods: get, post\r\n");
      expect(head).toContain("access-control-allow-headers: content-type, traceparent\r\n");
      expect(head).toContain("access-control-allow-private-network: true");
      expect(head).toMatch(/access-control-max-age: \d+\r\n/);
      expect(head).toContain("vary: origin, access-control-request-headers\r\n");
    },
  );

  it("an allowed origin allows no other origin, no page that hides its origin, and no other host", async () => {
    const { url } = running().broker;
    for (const headers of [
      { origin: evil },
      crossSite,
      { origin: "null" },
      { origin: `${origin}.evil.example` },
      { origin: "http://console.example.org" },
    ])
      expect(await ask(url, { target: "/", headers })).toMatchObject(refused);
    expect(await ask(url, { target: "/", headers: page, host: "evil.example" })).toMatchObject(refused);
  });

  it("a page of an allowed origin gets no cached answer of another caller: every answer has Vary: Origin", async () => {
    const { head } = await ask(running().broker.url, { target: "/", headers: {} });
    expect(head).toMatch(/\r\nvary: origin(, accept)?\r\n/);
    expect(head).not.toContain("access-control-");
  });
});

describe("a broker that allows every page", () => {
  const running = useWorld(embeddedWorld, { env: { STELE_ALLOWED_ORIGINS: "*", STELE_ALLOWED_HOSTS: "*" } });

  it.each([{ origin: evil }, { origin: "null" }, crossSite])(
    "a broker that allows every page serves %o under any host",
    async (headers) => {
      expect(
        await ask(running().broker.url, { target: "/rest/exist?topic=a", headers, host: "any.example" }),
      ).toMatchObject({ status: 200 });
    },
  );
});

describe("ports and loops of callbacks", () => {
  const running = useWorld(embeddedWorld);
  const receivers = useReceivers();
  const topic = "ports";
  beforeAll(async () => {
    await running().client.open(topic);
  });

  it.each([
    ["http://127.0.0.1/", /port 80/],
    ["https://127.0.0.1/", /port 443/],
    ["http://localhost:631/", /port 631/],
    ["http://[::1]:1023/", /port 1023/],
    ["http://127.0.0.1:6000/", /port 6000/],
    ["http://127.0.0.1:22/", /port 22/],
    ["http://127.0.0.1:0/", /port 0/],
    ["http://192.0.2.1:25/", /port 25/],
    ["http://8.8.8.8:6667/", /port 6667/],
    ["https://example.org:10080/", /port 10080/],
  ])("the callback url %s is refused, and the message names its port", async (url, reason) => {
    const { client } = running();
    expect(await codeOf(client.subscribe({ topic, url }))).toBe(100501);
    await expect(client.subscribe({ topic, url })).rejects.toThrow(reason);
  });

  it("the broker calls a receiver at a port above 1023", async () => {
    const { client } = running();
    const receiver = await receivers();
    await client.subscribe({ topic, url: receiver.url, subscriptionId: randomUUID() });
    await client.publish(topic, "x");
    await receiver.waitForCount(1);
  });

  it("a callback url that publishes to its subscription's own topic starts no loop", async () => {
    const { client, broker } = running();
    await client.open("loop");
    await client.subscribe({ topic: "loop", url: `${broker.url}/rest/publish?topic=loop&content=x` });
    for (let count = 0; count < loopPublishes; count += 1) await client.publish("loop", "x");
    expect((await client.state("loop")).sequenceNumber).toBe(loopPublishes);
  });
});
