import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { formatKeyCredential } from "../access/credential.ts";
import type { Attachment, Broker, OriginSource, TailCall } from "../broker.ts";
import type { Delivery } from "../session/peer.ts";
import { testCaller } from "../testing/as-caller.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const everything: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "close", "publish", "subscribe", "read", "unsubscribe", "admin"] },
];
/** The rule that docs/access.md gives for the members of a tenant. */
const own: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "publish", "subscribe"], filter: "${tenant}/#" },
];
const principals = { acme: "acme", globex: "globex", operator: undefined, initech: "initech" } as const;
type Name = keyof typeof principals;
const id = "ffffffff-0000-4000-8000-000000000001";
const groupId = undefined;

let engine: TestEngine;
let calls: Broker;
beforeEach(async () => {
  const apiKeys = new MemoryApiKeys();
  for (const [index, tenant] of Object.values(principals).entries()) {
    const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
    const owner = { principal: "shop", tenant, roles: [tenant === "initech" ? "own" : "all"] };
    await apiKeys.insertApiKey({ id: String(index).repeat(16), digest: sha256(secret), ...owner, ...times }, 10);
  }
  const quotas = { tenants: { globex: { publishesPerSecond: 100 } }, principals: {} };
  engine = await TestEngine.start({
    confirmations: 0,
    keys: { apiKeys, roles: new Map(Object.entries({ all: everything, own })), quotas, sha256 },
  });
  calls = engine.running.calls;
  for (const name of ["acme", "globex"] as const) await calls.open(by(name), { topic: "x", groupId });
});
afterEach(() => engine.stop());

function by(name: Name): Caller {
  const credential = formatKeyCredential({ id: String(Object.keys(principals).indexOf(name)).repeat(16), secret });
  const principal = calls.authenticate(credential, testCaller);
  if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
  return { ...testCaller, principal };
}

/** Publishes, and returns the eventId. */
async function say(name: Name, topic: string, text: string = name): Promise<string> {
  const submitted = { submit: (...rest: Tail<Parameters<Broker["submit"]>>) => calls.submit(by(name), ...rest) };
  const published = publish(submitted, { topic, groupId, content: Buffer.from(text), extensions: [] });
  await engine.clock.settle();
  return (await published).eventId;
}
type Tail<List extends readonly unknown[]> = List extends readonly [unknown, ...infer Rest] ? Rest : never;

const subscribe = (name: Name, topic: string, subscriptionId?: string) =>
  calls.subscribe(by(name), { ...orderOf(name), topic, subscriptionId });
const orderOf = (name: Name) =>
  ({ groupId, url: `http://${name}/`, format: "RESTful", offset: undefined, secret: undefined }) as const;
const heardBy = (name: Name) =>
  engine.sink.attempts
    .filter(({ subscription: { url } }) => url === `http://${name}/`)
    .map(({ event }) => `${event.topic} ${Buffer.from(event.content).toString()}`);

async function attach(name: Name, filter: string, qos: 0 | 1 | 2 = 1): Promise<[RecordingPeer, Attachment]> {
  const peer = new RecordingPeer();
  const request = { groupId, protocol: "MQTT", key: "k", isClean: true, windowMax: 1, will: undefined } as const;
  const attachment = await calls.attach(by(name), { ...request, expiryMs: 9_000, onConnected: () => {} }, peer);
  const how = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  const asked: SessionFilter = { filter: filter as TopicFilter, ...how };
  expect(await attachment.subscribe([asked])).toEqual([true]);
  await engine.clock.settle();
  return [peer, attachment];
}
const heardAt = ({ deliveries }: RecordingPeer) => deliveries.map(({ event }) => Buffer.from(event.content).toString());
const given = ({ deliveries }: RecordingPeer) => deliveries.map(({ event }) => event.topic);

it("an event of another tenant cannot be read, proven or named as an offset", async () => {
  const [own, foreign] = [await say("acme", "x"), await say("globex", "x")];
  const missing = { code: 100_303, message: `eventId does not exist: "${foreign}"` };
  expect(await calls.getEvent(by("acme"), { eventId: own, groupId })).toMatchObject({ topic: "x", eventId: own });
  await expect(calls.getEvent(by("acme"), { eventId: foreign, groupId })).rejects.toMatchObject(missing);
  await expect(calls.getProof(by("acme"), { eventId: foreign, groupId })).rejects.toMatchObject(missing);
  const call = { ...orderOf("acme"), topic: "#", subscriptionId: undefined, offset: foreign };
  await expect(calls.subscribe(by("acme"), call)).rejects.toMatchObject(missing);
  const stream = { filters: ["#"], acknowledges: true, offset: foreign };
  const durable = { groupId, protocol: "STOMP", key: id, isClean: false, windowMax: 1, will: undefined } as const;
  const asked = { ...durable, stream, expiryMs: 0, onConnected: () => {} };
  const attached = calls.attach(by("acme"), asked, new RecordingPeer());
  await expect(attached).rejects.toMatchObject(missing);
});

it("only the tenant of a removed event learns that it existed", async () => {
  const foreign = await say("globex", "x");
  engine.chain.cutBack(engine.chain.head - 1);
  engine.chain.sealEmpty();
  await engine.clock.settle();
  const get = (name: Name) => calls.getEvent(by(name), { eventId: foreign, groupId });
  await expect(get("globex")).rejects.toThrow("was taken back by a reorganisation of the chain");
  await expect(get("acme")).rejects.toThrow(/^eventId does not exist: "[0-9a-f-]*"$/);
});

it("refuses a proof to a tenant, because the proof's transaction may name topics of other tenants", async () => {
  const eventId = await say("acme", "x");
  await expect(calls.getProof(by("acme"), { eventId, groupId })).rejects.toMatchObject({ code: 100_702 });
});

it("two tenants can use the same identifier for their subscriptions", async () => {
  expect(await subscribe("acme", "x", id)).toBe(id);
  expect(await subscribe("globex", "#", id)).toBe(id);
  for (const name of ["acme", "globex"] as const) await say(name, "x");
  expect([heardBy("acme"), heardBy("globex")]).toEqual([["x acme"], ["x globex"]]);
  await calls.unSubscribe(by("globex"), { subscriptionId: id });
  const again = calls.unSubscribe(by("globex"), { subscriptionId: id });
  await expect(again).rejects.toMatchObject({ code: 100_504, message: `subscriptionId does not exist: "${id}"` });
  await say("acme", "x", "again");
  expect(heardBy("acme")).toEqual(["x acme", "x again"]);
});

it("a tenant can continue and end its subscription by an identifier that the broker made, and another tenant cannot", async () => {
  const made = await subscribe("acme", "x");
  expect(made).toMatch(/^[0-9a-f-]{36}$/);
  await expect(calls.unSubscribe(by("globex"), { subscriptionId: made })).rejects.toMatchObject({ code: 100_504 });
  expect(await subscribe("acme", "x", made)).toBe(made);
  await calls.unSubscribe(by("acme"), { subscriptionId: made });
  expect((await calls.listSubscriptions(by("operator")))[0]?.subscriptions).toEqual([]);
});

it("an admin without a tenant sees real names and identifiers, and can continue and end a tenant's subscription", async () => {
  await subscribe("acme", "x", id);
  const listed = (await calls.listSubscriptions(by("operator")))[0]?.subscriptions ?? [];
  expect(listed).toMatchObject([{ id: `acme/${id}`, filter: "acme/x", principal: "acme/shop" }]);
  const page = await calls.list(by("operator"), { pageIndex: 0, pageSize: 9, groupId });
  expect(page.topics.map(({ name }) => name)).toEqual(["acme/x", "globex/x"]);
  const again = subscribe("operator", "acme/x", `acme/${id}`);
  expect(await again).toBe(`acme/${id}`);
  await calls.unSubscribe(by("operator"), { subscriptionId: `acme/${id}` });
  await expect(calls.unSubscribe(by("acme"), { subscriptionId: id })).rejects.toMatchObject({ code: 100_504 });
});

it("a tenant cannot use an identifier that contains its own prefix or another tenant's", async () => {
  await subscribe("acme", "x", id);
  for (const text of [`acme/${id}`, `globex/${id}`]) {
    await expect(subscribe("globex", "x", text)).rejects.toMatchObject({
      code: 100_505,
      message: `subscriptionId is not a UUID: "${text}"`,
    });
  }
});

it("a tenant has no rights to the broker as a whole, whatever its rules say", async () => {
  expect(() => calls.authorize(by("acme"), "administer")).toThrow(expect.objectContaining({ code: 100_702 }));
  expect(() => calls.authorize(by("acme"), "chain")).toThrow(expect.objectContaining({ code: 100_702 }));
  await expect(calls.listSubscriptions(by("acme"))).rejects.toMatchObject({ code: 100_702 });
  expect(() => calls.authorize(by("operator"), "administer")).not.toThrow();
});

const ask = (name: Name, action: "subscribe" | "read", topic: string) => () =>
  calls.authorize(by(name), action, { groupId, topic });

it("rights are checked under the tenant's names, and a refusal shows these names", () => {
  for (const topic of ["x", "#", "$x"]) expect(ask("acme", "subscribe", topic), topic).not.toThrow();
  expect(ask("initech", "read", "x")).toThrow(/^not allowed: read "x"$/);
});

it("a tenant's callback can have a topic whose name looks like a shared filter, under the tenant's real name of it", async () => {
  const topic = "$share/s/x";
  await calls.open(by("operator"), { topic: "$share/s/acme/x", groupId });
  await expect(subscribe("acme", topic)).rejects.toMatchObject({
    code: 100_101,
    message: `topic not exist: "${topic}"`,
  });
  await calls.open(by("acme"), { topic, groupId });
  await subscribe("acme", topic);
  for (const text of ["$share/s/acme/x", "$tenant/acme/$share/s/x"]) await say("operator", text);
  expect(heardBy("acme")).toEqual([`${topic} operator`]);
});

it("a tenant's callback and tail cannot have a shared filter, whatever its rules say", async () => {
  const shared = { code: 100_109, message: 'topic pattern is invalid: "$share/s/#": only MQTT has shared filters' };
  for (const name of ["globex", "initech"] as const) {
    await expect(subscribe(name, "$share/s/#")).rejects.toMatchObject(shared);
    const call = { groupId, after: "OFFSET_FIRST", lastEventId: undefined, onConnected: () => {} };
    const tail = calls.tail(by(name), { ...call, filters: ["x", "$share/s/#"] }, new RecordingPeer());
    await expect(tail).rejects.toMatchObject(shared);
    expect(ask(name, "subscribe", "$share/s/#")).toThrow(expect.objectContaining(shared));
  }
});

it("topics of the operator that a tenant cannot name do not reach its filters, its pages, or its callbacks", async () => {
  await subscribe("acme", "#");
  const [peer] = await attach("acme", "#");
  for (const topic of ["acme", "acme/$y", "$tenant/acme/y", "acme/y"]) {
    await calls.open(by("operator"), { topic, groupId });
    await say("operator", topic);
  }
  expect([heardBy("acme"), given(peer)]).toEqual([["y operator"], ["y"]]);
  const page = await calls.list(by("acme"), { pageIndex: 0, pageSize: 9, groupId });
  expect([page.total, page.topics.map(({ name }) => name)]).toEqual([2, ["x", "y"]]);
});

it.each([0, 1, 2] as const)("at QoS %i, a share skips events that its tenant cannot name", async (qos) => {
  const [peer, { session }] = await attach("acme", "$share/s/#", qos);
  for (const topic of ["acme", "acme/$y"]) {
    await calls.open(by("operator"), { topic, groupId });
    await say("operator", topic);
  }
  await say("acme", "x");
  await engine.clock.settle();
  expect(given(peer)).toEqual(["x"]);
  expect(session.hasFilter("$share/s/#" as TopicFilter)).toBe(true);
});

it("a tail and an event that is passed without a commit reach only their tenant", async () => {
  const foreign = await say("globex", "x", "old");
  const peers = { acme: new RecordingPeer(), globex: new RecordingPeer() };
  const origins: { acme?: OriginSource; globex?: OriginSource } = {};
  for (const name of ["acme", "globex"] as const) {
    const onConnected: TailCall["onConnected"] = (_session, _start, found) => void (origins[name] = found);
    const call = { groupId, filters: ["#"], after: "OFFSET_FIRST", lastEventId: undefined, onConnected };
    const tail = calls.tail(by(name), call, peers[name]);
    await engine.clock.settle();
    await tail;
    await say(name, "x");
    const refused = calls.tail(by("acme"), { ...call, after: foreign }, new RecordingPeer());
    await expect(refused).rejects.toMatchObject({ code: 100_303, message: `eventId does not exist: "${foreign}"` });
  }
  expect([given(peers.acme), heardAt(peers.acme)]).toEqual([["x"], ["acme"]]);
  expect([given(peers.globex), heardAt(peers.globex)]).toEqual([
    ["x", "x"],
    ["old", "globex"],
  ]);
  for (const name of ["acme", "globex"] as const) {
    const { address } = await calls.state(by(name), { topic: "x", groupId });
    const [event] = peers[name].deliveries.map((delivery) => delivery.event);
    if (event === undefined) throw new Error("nothing was given");
    const origin = origins[name]?.load(event, new AbortController().signal);
    await engine.clock.settle();
    expect((await origin)?.source.toLowerCase()).toContain(address);
  }
  const passed: string[] = [];
  for (const name of ["acme", "globex"] as const) {
    const peer = Object.assign(new RecordingPeer(), {
      pass: ({ event }: Delivery) => void passed.push(`${name} ${event.topic}`),
    });
    const request = { groupId, protocol: "MQTT", key: "p", isClean: true, windowMax: 1, will: undefined } as const;
    const attachment = await calls.attach(by(name), { ...request, expiryMs: 0, onConnected: () => {} }, peer);
    const how = { qos: 0, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await attachment.subscribe([{ filter: "#" as TopicFilter, ...how }]);
    await engine.clock.settle();
  }
  void calls.pass(by("acme"), { topic: "live", groupId, content: Buffer.from("x"), extensions: [] });
  void calls.pass(by("operator"), { topic: "acme", groupId, content: Buffer.from("x"), extensions: [] });
  await engine.clock.settle();
  expect(passed).toEqual(["acme live"]);
});

it("shares of two tenants with the same name and filter are separate", async () => {
  const [[acme], [globex]] = [await attach("acme", "$share/s/#"), await attach("globex", "$share/s/#")];
  for (const name of ["acme", "globex"] as const) await say(name, "x");
  expect([heardAt(acme), heardAt(globex)]).toEqual([["acme"], ["globex"]]);
});

it("a filter of a tenant can leave out the session's own publishes", async () => {
  const [, { session, subscribe: add }] = await attach("acme", "$x/#");
  const how = { qos: 1, isNoLocal: true, isRetainAsPublished: false, identifier: undefined } as const;
  await add([{ filter: "x" as TopicFilter, ...how }]);
  expect([session.originFor("x"), session.originFor("acme/x")]).toEqual([session.id, undefined]);
});

it("refusals say how long a topic of the tenant may be, and do not show the prefix", async () => {
  const long = "y".repeat(252);
  const tooLong = { code: 100_102, message: "topic name exceeds max length: 252 characters, at most 251" };
  await expect(calls.open(by("acme"), { topic: long, groupId })).rejects.toMatchObject(tooLong);
  await calls.open(by("acme"), { topic: long.slice(1), groupId });
  const [, { subscribe: add }] = await attach("acme", "#");
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const filters = [`${long.slice(1)}/#`, "x/y", `$share/s/${long.slice(3)}/#`] as TopicFilter[];
  const answers = await add(filters.map((filter) => ({ filter, ...how })));
  expect(answers).toMatchObject([{ code: 100_102 }, true, true]);
  const missing = calls.state(by("acme"), { topic: "no", groupId });
  await expect(missing).rejects.toThrow(/^topic not exist: "no"$/);
});

it.each([
  ["y".repeat(252), { code: 100_102, message: "topic name exceeds max length: 252 characters, at most 248" }],
  ["", { code: 100_103 }],
  ["x/", { code: 100_106, message: 'topic name contains an invalid character: "x/" ends in "/"' }],
  ["é", { code: 100_106 }],
])("says what is wrong with the name %j even to a caller with rights to other names only", async (topic, fault) => {
  await expect(calls.open(by("initech"), { topic, groupId })).rejects.toMatchObject(fault);
  const call = { topic, groupId, content: new Uint8Array([1]), extensions: [] };
  expect(() => calls.submit(by("initech"), call, () => {})).toThrow(expect.objectContaining(fault));
  await expect(calls.close(by("initech"), { topic, groupId })).rejects.toMatchObject({ code: 100_702 });
});

it("a tenant cannot reach another tenant's topic by its real name, whatever its rules say", async () => {
  const names = await calls.list(by("globex"), { pageIndex: 0, pageSize: 9, groupId });
  expect(names.topics.map(({ name }) => name)).toEqual(["x"]);
  await expect(calls.state(by("globex"), { topic: "acme/x", groupId })).rejects.toMatchObject({ code: 100_101 });
});
