import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Peer, type Transport } from "../conformance/mqtt/peer.ts";
import type { Params } from "../harness/apis.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { until } from "../harness/until.ts";
import { whenClosed } from "../harness/when-closed.ts";
import { clients, codes, insufficient, invalid, refused } from "./support/access-table.ts";
import { AccessWorld, type CredentialName } from "./support/access-world.ts";
import { cloudEventForms, publishCloudEvents } from "./support/cloud-events.ts";
import { talk } from "./support/stomp-talk.ts";

let world: AccessWorld;
let receiver: Receiver;
let eventId = "";
let subscriptionId = "";
beforeAll(async () => {
  receiver = await startReceiver();
  world = await AccessWorld.start({ hasClientsApart: true });
  const api = world.api("REST POST JSON", "client");
  await api.call("open", { topic: "t/a" });
  const published = await api.call("publish", { topic: "t/a", content: "x" });
  eventId = published.isGood ? (published.value as { eventId: string }).eventId : "";
  const subscribed = await api.call("subscribe", { topic: "t/#", url: receiver.url });
  subscriptionId = subscribed.isGood ? String(subscribed.value) : "";
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

/** Every operation, in an order in which no call removes what a later one needs. */
const operations: readonly (readonly [name: string, params: () => Params])[] = [
  ["exist", () => ({ topic: "t/a" })],
  ["state", () => ({ topic: "t/a" })],
  ["list", () => ({ pageIndex: 0, pageSize: 10 })],
  ["getEvent", () => ({ eventId })],
  ["getProof", () => ({ eventId })],
  ["publish", () => ({ topic: "t/a", content: "y" })],
  ["open", () => ({ topic: "t/b" })],
  ["close", () => ({ topic: "t/a" })],
  ["subscribe", () => ({ topic: "t/#", url: receiver.url })],
  ["subscribe", () => ({ topic: "t/#", url: receiver.url, subscriptionId })],
  ["unSubscribe", () => ({ subscriptionId })],
];

/** Codes for credentials with rights on other topics only: the broker hides from these callers whether an event or a subscription exists. */
const hiddenCodes: Readonly<Record<string, number>> = { getEvent: 100_303, getProof: 100_303, unSubscribe: 100_504 };

/** The name of an operation in an API of this kind: REST calls getProof `proof`. */
function nameAt(kind: string, operation: string): string {
  return operation === "getProof" && kind.startsWith("REST") ? "proof" : operation;
}

describe.each(["REST GET", "REST POST JSON", "JSON-RPC", "JSON-RPC positional"])("access by %s", (kind) => {
  it.each(refused)('the broker refuses every operation with the credential "%s", and changes nothing', async (name) => {
    const before = await world.snapshot();
    const api = world.api(kind, name);
    const calls = operations.map(([operation, toParams]) => api.call(nameAt(kind, operation), toParams()));
    for (const [index, outcome] of (await Promise.all(calls)).entries()) {
      const operation = operations[index]?.[0];
      const hidden = name.endsWith("elsewhere") ? hiddenCodes[operation ?? ""] : undefined;
      expect(outcome, operation).toMatchObject({ isGood: false, code: hidden ?? codes[name] });
      if (kind.startsWith("JSON-RPC")) expect(outcome).toMatchObject({ rpcCode: -32_001 });
    }
    expect(await world.snapshot()).toEqual(before);
  });

  it.each(clients)('the broker serves every operation with the credential "%s"', async (name) => {
    const api = world.api(kind, name);
    const [own, reopen] = [await api.call("subscribe", { topic: "t/#", url: receiver.url }), { topic: "t/a" }];
    const ownId = own.isGood ? String(own.value) : "";
    for (const [operation, toParams] of operations) {
      const params = operation === "unSubscribe" ? { subscriptionId: ownId } : toParams();
      expect(await api.call(nameAt(kind, operation), params), operation).toMatchObject({ isGood: true });
      if (operation === "close") await api.call("open", reopen);
    }
  });

  it.each([
    ["a filter wider than its own", "subscribe", { topic: "#", url: "http://127.0.0.1:9/" }],
    ["a filter that only overlaps its own", "subscribe", { topic: "+/a", url: "http://127.0.0.1:9/" }],
    ["a topic outside its filter", "publish", { topic: "tt/a", content: "x" }],
    ["the parent topic of its filter, which does not exist", "publish", { topic: "t", content: "x" }],
  ] as const)('the broker refuses the credential "client" %s', async (what, operation, params) => {
    const outcome = await world.api(kind, "client").call(operation, params);
    const isParent = what.startsWith("the parent topic"); // `t/#` matches `t`.
    expect(outcome).toMatchObject({ isGood: false, code: isParent ? 100_101 : 100_702 });
  });
});

describe.each(cloudEventForms)("access by CloudEvents, %s", (form) => {
  it.each(refused)('the broker refuses the publish with the credential "%s", and changes nothing', async (name) => {
    const before = await world.snapshot();
    const answer = await world.http(name).send(publishCloudEvents(form, ["t/a"]));
    expect(answer.json()).toMatchObject({ code: codes[name] });
    expect(await world.snapshot()).toEqual(before);
  });

  it.each(clients)(
    'the broker accepts events for the topics of the credential "%s", and refuses others',
    async (name) => {
      const send = async (...topics: readonly [string, ...string[]]): Promise<unknown> =>
        (await world.http(name).send(publishCloudEvents(form, topics))).json();
      expect(JSON.stringify(await send("t/a"))).toContain('"SUCCESS"');
      const before = await world.snapshot();
      expect(await send("tt/a")).toMatchObject({ code: 100_702 });
      if (form === "batch") expect(await send("t/a", "tt/a")).toMatchObject({ code: 100_702 });
      expect(await world.snapshot()).toEqual(before);
    },
  );
});

it.each(["client", "token client"] as const)(
  'the credential "%s" is not logged when it is sent as a path or a topic',
  async (name) => {
    const credential = world.credential(name) ?? "";
    const client = world.http("none");
    await client.send({ method: "GET", path: `/${credential}` });
    await client.send({ method: "GET", path: `/tail?topic=${credential}` });
    await world.http("weak").send({ method: "GET", path: `/rest/publish?topic=${credential}&content=x` });
    await until("the audit log has the refusals", () => world.auditLog().includes("(redacted)"));
    await until("the log has the refusals", () => world.broker.stdout().includes("there is nothing at GET"));
    for (const text of [world.auditLog(), world.broker.stdout()]) expect(text).not.toContain(credential.slice(-30));
  },
);

it("a credential in the query string is ignored", async () => {
  const credential = world.credential("client") ?? "";
  const query = ["authorization", "access_token", "token", "key", "apiKey"].map((name) => `${name}=${credential}`);
  const path = `/rest/state?topic=t/a&${query.join("&")}`;
  expect((await world.http("none").send({ method: "GET", path })).json()).toMatchObject({ code: 100_701 });
});

function subscribeTo(topic: string) {
  return { cmd: "subscribe", messageId: 2, subscriptions: [{ topic, qos: 1 }] };
}

describe.each([4, 5] as const)("access over MQTT, protocol level %d", (version) => {
  const open = async (name: CredentialName, packet: object = {}, transport: Transport = "tcp"): Promise<Peer> => {
    const addresses = { tcp: world.port("MQTT"), websocket: `${world.broker.url.replace("http", "ws")}/mqtt` };
    const peer = await Peer.open(addresses, { transport, version, localAddress: world.takeAddress() });
    const password = world.credential(name);
    const login = password === undefined ? {} : { username: "any", password: Buffer.from(password) };
    peer.send({ cmd: "connect", clientId: `${name} ${version}`, clean: true, keepalive: 0, ...login, ...packet });
    return peer;
  };
  const codeOf = (packet: { reasonCode?: number | undefined; returnCode?: number | undefined }) =>
    version === 5 ? packet.reasonCode : packet.returnCode;
  const publish = { cmd: "publish", qos: 1, messageId: 1, topic: "t/a", payload: "mqtt" };

  it.each(invalid)('the credential "%s" is refused at CONNECT, over TCP and WebSocket', async (name) => {
    for (const peer of await Promise.all([open(name), open(name, {}, "websocket")])) {
      expect(codeOf(await peer.next("connack"))).toBe(version === 5 ? 0x86 : 4);
      await peer.expectClosed();
    }
  });

  it.each(insufficient)('the credential "%s" may neither publish nor subscribe', async (name) => {
    const before = await world.snapshot();
    const peer = await open(name, {}, version === 5 ? "websocket" : "tcp");
    expect(codeOf(await peer.next("connack"))).toBe(0);
    for (const topic of ["t/#", "t/a", "#", "$share/x/t/#"]) {
      peer.send(subscribeTo(topic));
      expect((await peer.next("suback")).granted).toEqual([version === 5 ? 0x87 : 0x80]);
    }
    peer.send(publish);
    if (version === 5) expect((await peer.next("puback")).reasonCode).toBe(0x87);
    else await peer.expectClosed();
    peer.drop();
    expect(await world.snapshot()).toEqual(before);
  });

  it("a publish to a topic that does not exist needs the right to open it", async () => {
    const before = await world.snapshot();
    const peer = await open("publisher");
    expect(codeOf(await peer.next("connack"))).toBe(0);
    peer.send({ ...publish, topic: "t/missing" });
    if (version === 5) expect((await peer.next("puback")).reasonCode).toBe(0x87);
    else await peer.expectClosed();
    peer.drop();
    expect(await world.snapshot()).toEqual(before);
  });

  it("a will to a topic that the client may not publish to is refused at CONNECT", async () => {
    const will = { topic: "t/a", payload: Buffer.from("x"), qos: 0, retain: false };
    const peer = await open("elsewhere", { will });
    expect(codeOf(await peer.next("connack"))).toBe(version === 5 ? 0x87 : 5);
    await peer.expectClosed();
  });

  it.each(clients)('the credential "%s" is accepted as the password and as the user name', async (name) => {
    const login = { username: world.credential(name), password: undefined, clientId: `by name ${version}` };
    for (const peer of [await open(name), await open(name, login)]) {
      expect(codeOf(await peer.next("connack"))).toBe(0);
      peer.send(subscribeTo("$share/x/t/#"));
      expect((await peer.next("suback")).granted).toEqual([1]);
      peer.drop();
    }
    const peer = await open(name, { clientId: `publisher ${version}` });
    await peer.next("connack");
    peer.send(publish);
    expect((await peer.next("puback")).reasonCode ?? 0).toBe(0);
    peer.drop();
  });

  it("the broker closes a connection soon after its key is revoked", async () => {
    const key = (await world.key("create", "--principal", "leaver", "--role", "client")).trim();
    await until("the broker knows the key", async () =>
      (await world.http("none").send(bearer(key))).text.includes("sequenceNumber"),
    );
    const peer = await open("client", { clientId: "leaver", password: Buffer.from(key) });
    expect(codeOf(await peer.next("connack"))).toBe(0);
    await world.key("revoke", key.slice(6, 22));
    await peer.expectEnded(0x87);
    expect((await world.http("none").send(bearer(key))).json()).toMatchObject({ code: 100_701 });
  });
});

/** Expects the broker to close the connection within 2.5 s of `since`, a time of `Date.now()`. */
async function endsSoonAfter(peer: Peer, since: number): Promise<void> {
  await peer.expectEnded(0x87);
  expect(Date.now() - since).toBeLessThan(2_500);
}
async function connectWith(token: string): Promise<Peer> {
  const peer = await Peer.open({ tcp: world.port("MQTT"), websocket: "" }, { transport: "tcp", version: 5 });
  const login = { username: "any", password: Buffer.from(token) };
  peer.send({ cmd: "connect", clientId: token.slice(-20), clean: true, keepalive: 0, ...login });
  expect((await peer.next("connack")).reasonCode).toBe(0);
  return peer;
}

describe("a token that becomes invalid while a connection is open", () => {
  it("the broker closes a connection when its token expires, and then refuses the token", async () => {
    const token = world.signFor(3);
    const expiresAt = (JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { exp: number })
      .exp;
    const peer = await connectWith(token);
    await endsSoonAfter(peer, expiresAt * 1000);
    expect((await world.http("none").send(bearer(token))).json()).toMatchObject({ code: 100_701 });
  });

  it("the broker closes a connection when the token's issuer no longer publishes the key, and then refuses the token", async () => {
    const token = world.signFor(600, world.addIssuerKey("short-lived"));
    await until("the broker knows the issuer's key", async () =>
      (await world.http("none").send(bearer(token))).text.includes("sequenceNumber"),
    );
    const peer = await connectWith(token);
    const removedAt = Date.now();
    world.removeIssuerKeys();
    await endsSoonAfter(peer, removedAt);
    expect((await world.http("none").send(bearer(token))).json()).toMatchObject({ code: 100_701 });
  });

  it("the broker closes a STOMP connection without a subscription when its token expires", async () => {
    const socket = connect(world.port("STOMP"), "127.0.0.1");
    socket.write(`CONNECT\naccept-version:1.2\nhost:x\nlogin:any\npasscode:${world.signFor(2)}\n\n\0`);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    await whenClosed(socket);
    expect(text).toMatch(/^CONNECTED[^]*ERROR\n[^\0]*code:100701\n/);
  });
});

function bearer(key: string) {
  return { method: "GET", path: "/rest/state?topic=t/a", headers: { authorization: `Bearer ${key}` } } as const;
}

describe("access over STOMP", () => {
  const send = "SEND\ndestination:t/a\nreceipt:sent\n\nstomp\0";
  const subscribe = "SUBSCRIBE\nid:1\ndestination:t/#\nack:auto\nreceipt:subscribed\n\n\0";

  it.each(invalid)('the credential "%s" is refused at CONNECT', async (name) => {
    const before = await world.snapshot();
    const text = await talk(world, name, send);
    expect(text).toMatch(/^ERROR\n[^\0]*code:100701\n/);
    expect(text).not.toContain("CONNECTED");
    expect(await world.snapshot()).toEqual(before);
  });

  it.each(insufficient)('the credential "%s" may neither send nor subscribe', async (name) => {
    const before = await world.snapshot();
    const committed = `BEGIN\ntransaction:1\n\n\0${send.replace("\n\n", "\ntransaction:1\n\n")}COMMIT\ntransaction:1\n\n\0`;
    for (const frame of [send, subscribe, committed]) {
      const text = await talk(world, name, frame);
      expect(text).toContain("CONNECTED");
      expect(text).toMatch(/\nERROR\n[^\0]*code:100702\n|\0\n?ERROR\n[^\0]*code:100702\n/);
    }
    expect(await world.snapshot()).toEqual(before);
  });

  it("a SEND to a topic that does not exist needs the right to open it", async () => {
    const before = await world.snapshot();
    expect(await talk(world, "publisher", send.replace("t/a", "t/missing"))).toMatch(/ERROR\n[^\0]*code:100702\n/);
    expect(await world.snapshot()).toEqual(before);
  });

  it.each(clients)('the credential "%s" is served', async (name) => {
    const text = await talk(world, name, send, subscribe);
    expect(text).toContain("receipt-id:sent");
    expect(text).toContain("receipt-id:subscribed");
    expect(text).not.toContain("ERROR");
  });
});

it("a callback subscription gets nothing after its owner's last key is revoked, and continues when the owner subscribes with a new key", async () => {
  const own = await startReceiver();
  const create = async () => (await world.key("create", "--principal", "owner", "--role", "client")).trim();
  const first = await create();
  const ask = async (key: string, path: string) => (await world.http("none").send({ ...bearer(key), path })).text;
  const waitForAnswer = (key: string, part: string) =>
    until(part, async () => (await ask(key, "/rest/state?topic=t/a")).includes(part));
  await waitForAnswer(first, "sequenceNumber");
  const url = encodeURIComponent(own.url);
  const refusal = JSON.parse(await ask(first, `/rest/subscribe?topic=t/c&url=${url}`)) as string | { code: number };
  expect(refusal).toMatchObject({ code: 100_101 });
  await ask(first, "/rest/open?topic=t/c");
  const made = JSON.parse(await ask(first, `/rest/subscribe?topic=t/c&url=${url}`)) as string;
  await world.key("revoke", first);
  await waitForAnswer(first, "100701");
  await world.api("REST GET", "client").call("publish", { topic: "t/c", content: "while away" });
  const second = await create();
  await waitForAnswer(second, "sequenceNumber");
  expect(own.attempts).toHaveLength(0);
  expect(JSON.parse(await ask(second, `/rest/subscribe?topic=t/c&url=${url}&subscriptionId=${made}`))).toBe(made);
  await own.waitForCount(1);
  await own[Symbol.asyncDispose]();
});

it("a token may not subscribe callbacks until its principal has a key, and the refusal says so, even for a principal called auth0|6f59@x", async () => {
  const authorization = `Bearer ${world.signAs("auth0|6f59@x")}`;
  const path = `/rest/subscribe?topic=t/a&url=${encodeURIComponent(receiver.url)}`;
  const subscribe = async (): Promise<unknown> =>
    (await world.http("none").send({ method: "GET", path, headers: { authorization } })).json();
  const message = expect.stringContaining("create a key for its principal");
  expect(await subscribe()).toMatchObject({ code: 100_702, message });
  await world.key("create", "--principal", "auth0|6f59@x", "--role", "client");
  await until("the subscription is made", async () => typeof (await subscribe()) === "string");
});

it("no secret is in the log, the audit log or the banner", () => {
  const outputs = [world.broker.stdout() + world.broker.stderr(), world.auditLog()];
  for (const output of outputs) {
    expect(output.length).toBeGreaterThan(1_000);
    for (const secret of world.secrets) expect(output).not.toContain(secret);
  }
});
