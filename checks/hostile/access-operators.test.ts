import { adminOperations, adminPath } from "@stele/wire";
import { type Dispatcher, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { clients, codes, insufficient, invalid, refused } from "./support/access-table.ts";
import { AccessWorld, type CredentialName } from "./support/access-world.ts";

let world: AccessWorld;
let receiver: Receiver;
let eventId = "";
let subscriptionId = "";
let tail: Dispatcher.ResponseData;
let sessionId = "";
beforeAll(async () => {
  receiver = await startReceiver();
  world = await AccessWorld.start({ hasClientsApart: true });
  const api = world.api("REST POST JSON", "client");
  await api.call("open", { topic: "t/a" });
  const published = await api.call("publish", { topic: "t/a", content: "x" });
  eventId = published.isGood ? (published.value as { eventId: string }).eventId : "";
  const subscribed = await api.call("subscribe", { topic: "t/#", url: `${receiver.url}?token=not-to-be-shown` });
  subscriptionId = subscribed.isGood ? String(subscribed.value) : "";
  const headers = { authorization: `Bearer ${world.credential("client")}` };
  tail = await request(`${world.broker.url}/tail?topic=t/a`, { headers });
  const listing = { method: "GET", path: `${adminPath}/sessions` } as const;
  const sessions = (await world.http("admin", world.operators).send(listing)).json() as { items: { id: string }[] };
  sessionId = sessions.items[0]?.id ?? "";
});
afterAll(async () => {
  tail.body.on("error", () => undefined).destroy(); // undici emits an error for a body that is cut short.
  await world[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

/** Status and code of a call that is refused because of its credential. */
const refusalOf = (name: CredentialName) => {
  const code = codes[name] ?? 100_702;
  return { status: code === 100_701 ? 401 : 403, code };
};

const pages = ["/metrics", "/admin/listSubscription", "/admin/skippedEntries"] as const;

async function askPage(name: CredentialName, path: string): Promise<string> {
  return (await world.http(name, world.operators).send({ method: "GET", path })).text;
}

async function askChain(name: CredentialName): Promise<string> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });
  const headers = { "content-type": "application/json" };
  return (await world.http(name, world.operators).send({ method: "POST", path: "/chain", headers, body })).text;
}

describe("operators' pages", () => {
  it.each([...refused, ...clients])('operators\' pages are refused to the credential "%s"', async (name) => {
    const code = `"code":${refusalOf(name).code}`;
    const answers = await Promise.all([...pages.map((page) => askPage(name, page)), askChain(name)]);
    for (const [index, text] of answers.entries()) expect(text, pages[index]).toContain(code);
  });

  it.each(["admin", "token admin"] as const)('operators\' pages are served to the credential "%s"', async (name) => {
    for (const page of pages) expect(await askPage(name, page), page).not.toContain('"code":'); // Errors have this member.
    expect(await askChain(name)).toContain('"result":"0x');
  });

  it("operators' pages do not exist at the clients' port", async () => {
    for (const path of [...pages, "/chain", `${adminPath}/subscriptions`]) {
      const { status } = await world.http("admin").send({ method: "GET", path });
      expect([404, 405], path).toContain(status);
    }
  });

  it("/health/ready shows the groups to the admin, and only the status to everybody else", async () => {
    const ready = { method: "GET", path: "/health/ready" } as const;
    const names = [...refused, ...clients];
    const answers = await Promise.all(names.map((name) => world.http(name).send(ready)));
    for (const [index, answer] of answers.entries()) {
      expect(answer.json(), names[index]).toEqual({ status: "ready" });
    }
    expect((await world.http("admin").send(ready)).json()).toHaveProperty("groups");
  });

  it.each(["1", "nowhere"])('/health/ready of group "%s" is refused without a valid credential', async (groupId) => {
    const ask = { method: "GET", path: `/health/ready?groupId=${groupId}` } as const;
    const answers = await Promise.all(invalid.map((name) => world.http(name).send(ask)));
    for (const { status, text } of answers) expect([status, text]).toEqual([401, expect.stringContaining("100701")]);
  });

  it("/access shows each caller only its own rights, and refuses a caller without a valid credential", async () => {
    const ask = { method: "GET", path: "/access" } as const;
    const answers = await Promise.all(invalid.map((name) => world.http(name).send(ask)));
    for (const [index, name] of invalid.entries())
      expect([answers[index]?.status, answers[index]?.json()], name).toMatchObject([401, { code: 100_701 }]);
    for (const name of clients) {
      const rights = (await world.http(name).send(ask)).json() as { readonly actions: readonly string[] };
      expect(rights.actions, name).not.toContain("admin");
      expect(rights, name).toMatchObject({ principal: expect.any(String), serves: ["clients"] });
    }
    const admin = { actions: expect.arrayContaining(["admin"]) };
    expect((await world.http("admin").send(ask)).json()).toMatchObject({ ...admin, serves: ["clients"] });
    const atOperators = (await world.http("admin", world.operators).send(ask)).json();
    expect(atOperators).toMatchObject({ ...admin, serves: ["operators"] });
  });

  it("the OpenAPI and AsyncAPI documents need no key at either port, and AsyncAPI names the credentials of the HTTP server", async () => {
    for (const path of ["/openapi.json", "/asyncapi.json"]) {
      const asked = [undefined, world.operators].map((url) => world.http("none", url).send({ method: "GET", path }));
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
    }
    const { text } = await world.http("none", world.operators).send({ method: "GET", path: "/asyncapi.json" });
    const security = [{ $ref: "#/components/securitySchemes/bearer" }];
    expect(JSON.parse(text)).toMatchObject({
      servers: { http: { host: new URL(world.broker.url).host, protocol: "http", security } },
      components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
    });
  });
});

/** Request bodies, by the start of the operation's name. */
const bodies = [
  ["replay", '{"from":"OFFSET_FIRST"}'],
  ["change", '{"concurrency":2}'],
  ["redeliver", '{"all":true}'],
  ["discard", '{"all":true}'],
  ["setRole", '{"rules":[]}'],
] as const;

/** The operations that need a right. The API's own document needs none. */
const guarded = Object.entries(adminOperations).filter(([name]) => name !== "getOpenApi");

/** Calls one operation. Orders are dry runs, which need the same right and change nothing. In the list, `setRole` comes before `deleteRole`. */
async function askApi(name: CredentialName, operation: string) {
  const { method, path } = adminOperations[operation as keyof typeof adminOperations];
  const role = operation === "getRole" ? "admin" : "set-by-api";
  const id = operation === "getSession" ? sessionId : subscriptionId;
  const values = { id, topic: "t%2Fa", eventId, name: role, groupId: "1" };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: keyof typeof values) => values[key]);
  const query = method !== "POST" ? "" : `?dryRun=true${path.includes("{id}") ? "" : "&all=true"}`;
  const body = bodies.find(([name]) => operation.startsWith(name))?.[1] ?? "{}";
  const order =
    method === "GET" || method === "DELETE" ? {} : { headers: { "content-type": "application/json" }, body };
  const call = { method, path: `${adminPath}${filled}${query}`, ...order };
  const answer = await world.http(name, world.operators).send(call);
  return { status: answer.status, text: answer.text, body: answer.json() as { code?: number } }; // Only errors have a code.
}

describe("the admin API", () => {
  it.each([...refused, ...clients])('the admin API refuses every operation with the credential "%s"', async (name) => {
    const before = await world.snapshot();
    const { status, code } = refusalOf(name);
    const answers = await Promise.all(guarded.map(([operation]) => askApi(name, operation)));
    for (const [index, answer] of answers.entries()) {
      expect(answer, guarded[index]?.[0]).toMatchObject({ status, body: { code } });
    }
    expect(await world.snapshot()).toEqual(before);
  });

  it.each(["admin", "token admin"] as const)(
    'the admin API serves every operation with the credential "%s"',
    async (name) => {
      for (const [operation] of guarded)
        expect(await askApi(name, operation), operation).toMatchObject({ status: 200 });
    },
  );

  it("the admin API hides the query values of a callback url", async () => {
    const { text } = await askApi("admin", "getSubscription");
    expect(text).toContain("?token=hidden");
    expect(text).not.toContain("not-to-be-shown");
  });
});

describe("a tail", () => {
  const targets = ["/tail?topic=t/%23", "/tail?topic=t/a", "/tail?topic=t/a&topic=t/b"] as const;

  it.each(refused)('a tail is refused with the credential "%s", by GET and by HEAD', async (name) => {
    const { status, code } = refusalOf(name);
    const ask = (path: string) =>
      Promise.all([world.http(name).send({ method: "GET", path }), world.http(name).send({ method: "HEAD", path })]);
    for (const [answer, head] of await Promise.all(targets.map(ask))) {
      expect({ status: answer.status, body: answer.json() }).toMatchObject({ status, body: { code } });
      expect([head.status, head.text]).toEqual([status, ""]);
    }
  });

  it.each([...insufficient, ...clients])(
    'a tail is refused with the credential "%s" if a filter matches topics that the credential may not read',
    async (name) => {
      for (const path of ["/tail?topic=%23", "/tail?topic=t/a&topic=%23", "/tail?topic=%2B/a", "/tail?topic=tt/a"]) {
        expect((await world.http(name).send({ method: "GET", path })).status, path).toBe(403);
        expect((await world.http(name).send({ method: "HEAD", path })).status, path).toBe(403);
      }
    },
  );

  it.each(clients)('a tail is served with the credential "%s"', async (name) => {
    const authorization = `Bearer ${world.credential(name)}`;
    const ended = new AbortController();
    const answer = await fetch(`${world.broker.url}/tail?topic=t/%23&after=OFFSET_FIRST`, {
      headers: { authorization },
      signal: ended.signal,
    });
    expect(answer.status).toBe(200);
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (text.includes(eventId)) break;
    }
    ended.abort();
    expect((await world.http(name).send({ method: "HEAD", path: targets[0] })).status).toBe(200);
  });
});
