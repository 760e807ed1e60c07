import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachRequest, Broker } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { floodConnectionsMax, heldPerAddressMax } from "./failed-log-ins.ts";
import { keysStaleMsMax } from "./key-ring.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const client: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "publish", "subscribe", "unsubscribe", "read"], filter: "a/#" },
];
const admin: readonly AccessRule[] = [
  { effect: "allow", actions: ["admin", "subscribe", "unsubscribe", "open", "publish", "read"] },
];
const keeper: readonly AccessRule[] = [
  { effect: "allow", actions: ["subscribe", "unsubscribe"], filter: "a/#" },
  { effect: "deny", actions: ["unsubscribe"], filter: "a/b" },
];
const publisher: readonly AccessRule[] = [{ effect: "allow", actions: ["publish"], filter: "a/#" }];
const roles = new Map([
  ["client", client],
  ["admin", admin],
  ["publisher", publisher],
  ["keeper", keeper],
]);
const roleOf = {
  one: "client",
  other: "client",
  operator: "admin",
  second: "client",
  publisher: "publisher",
  keeper: "keeper",
} as const;
const names = { one: "1", other: "2", operator: "3", second: "4", publisher: "5", keeper: "6" } as const;
const idOf = (name: keyof typeof names): string => names[name].repeat(16);

let keys: MemoryApiKeys;
let engine: TestEngine;
let calls: Broker;
let warnings: (readonly [string, LogFields | undefined])[];
beforeEach(async () => {
  keys = new MemoryApiKeys();
  for (const name of ["one", "other", "operator"] as const) await insert(name, name);
  warnings = [];
  const logger = { ...silentLogger, warn: (text: string, fields?: LogFields) => warnings.push([text, fields]) };
  engine = await TestEngine.start({ keys: { apiKeys: keys, roles, sha256 }, logger });
  calls = engine.running.calls;
  await calls.open(by("one"), { topic: "a/b", groupId: undefined });
});
afterEach(() => engine.stop());

async function insert(name: keyof typeof names, principal: string): Promise<void> {
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const own = { id: idOf(name), digest: sha256(secret), principal, tenant: undefined, roles: [roleOf[name]] };
  expect(await keys.insertApiKey({ ...own, ...times }, 10)).toBe(true);
}

function by(name: keyof typeof names): Caller {
  const principal = calls.authenticate(formatKeyCredential({ id: idOf(name), secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal };
}

async function codeOf(run: () => unknown): Promise<number | undefined> {
  try {
    await run();
    return undefined;
  } catch (error) {
    return (error as { code: number }).code;
  }
}

const call = { topic: "a/#", groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
const subscribe = (caller: Caller, subscriptionId?: string, url = "http://one/") =>
  calls.subscribe(caller, { ...call, url, subscriptionId });

const publish = (caller: Caller, text: string, key?: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const content = new TextEncoder().encode(text);
    try {
      calls.submit(caller, { topic: "a/b", groupId: undefined, content, extensions: [], key }, resolve);
    } catch (error) {
      reject(error);
    }
  });
const receivedBy = (url: string) =>
  engine.sink.attempts
    .filter(({ subscription }) => subscription.url === url)
    .map(({ event }) => Buffer.from(event.content).toString());

it("lets only the owner or an admin resubscribe or end a subscription", async () => {
  const id = await subscribe(by("one"));
  const before = await engine.store.listSubscriptions();
  expect(before).toMatchObject([{ id, principal: "one" }]);
  expect(await codeOf(() => subscribe(by("other"), id, "http://thief/"))).toBe(100_702);
  expect(await codeOf(() => calls.unSubscribe(by("other"), { subscriptionId: id }))).toBe(100_504);
  expect(await engine.store.listSubscriptions()).toEqual(before);
  expect(await subscribe(by("one"), id, "http://two/")).toBe(id);
  expect(await subscribe(by("operator"), id, "http://three/")).toBe(id);
  expect(await engine.store.listSubscriptions()).toMatchObject([
    { principal: "one", delivery: { url: "http://three/" } },
  ]);
  await calls.unSubscribe(by("operator"), { subscriptionId: id });
  expect(await engine.store.listSubscriptions()).toEqual([]);
});

it("does not let the owner end a subscription or a session's filter if its rules deny unsubscribe on that topic", async () => {
  await insert("keeper", "keeper");
  await engine.clock.advance(1_000);
  const caller = by("keeper");
  const end = (subscriptionId: string) => codeOf(() => calls.unSubscribe(caller, { subscriptionId }));
  const kept = await calls.subscribe(caller, { ...call, topic: "a/b", url: "http://one/", subscriptionId: undefined });
  const other = await calls.subscribe(caller, {
    ...call,
    topic: "a/+/c",
    url: "http://one/",
    subscriptionId: undefined,
  });
  expect([await end(kept), await end(other)]).toEqual([100_702, undefined]);
  const attachment = await calls.attach(caller, attachRequest(), new RecordingPeer());
  await attachment.subscribe([{ ...filter, filter: "$share/s/a/b" } as never, { ...filter, filter: "a/+/c" } as never]);
  const listed = (await calls.listSubscriptions(by("operator")))[0]?.subscriptions ?? [];
  const idOfFilter = (text: string) => listed.find((one) => one.filter === text)?.id ?? "";
  expect([await end(idOfFilter("$share/s/a/b")), await end(idOfFilter("a/+/c"))]).toEqual([100_702, undefined]);
  expect(await codeOf(() => calls.unSubscribe(by("other"), { subscriptionId: kept }))).toBe(100_504);
});

it("refuses the second of two principals that subscribe with the same identifier at once", async () => {
  const id = "00000000-0000-4000-8000-00000000abcd";
  const made = [subscribe(by("one"), id), subscribe(by("other"), id, "http://thief/")];
  const outcomes = await Promise.all(made.map((one) => codeOf(() => one)));
  expect(outcomes).toEqual([undefined, 100_702]);
  expect(await engine.store.listSubscriptions()).toMatchObject([
    { principal: "one", delivery: { url: "http://one/" } },
  ]);
});

it("after a key is revoked and another key of its principal moves the subscription, calls only the new url", async () => {
  engine.sink.receive("http://one/", () => ({ status: "failed", reason: "down" }));
  const [id] = [await subscribe(by("one")), await publish(by("other"), "first")];
  await engine.clock.advance(60_000);
  await Promise.all([keys.revokeApiKey(idOf("one"), engine.clock.now()), engine.clock.advance(3_000)]);
  const tried = engine.sink.attempts.length;
  await Promise.all([insert("second", "one"), engine.clock.advance(1_000)]);
  await Promise.all([subscribe(by("second"), id, "http://moved/"), engine.clock.advance(600_000)]);
  expect(engine.sink.attempts.slice(tried).map(({ subscription }) => subscription.url)).toEqual(["http://moved/"]);
});

it("suspends the callbacks of a revoked key; another key of its principal resumes them at the cursor", async () => {
  const id = await subscribe(by("one"));
  await publish(by("other"), "first");
  await engine.clock.advance(100);
  await keys.revokeApiKey(idOf("one"), engine.clock.now());
  await engine.clock.advance(1_000);
  expect(await codeOf(() => publish(by("one"), "refused"))).toBe(100_701);
  await publish(by("other"), "second");
  await engine.clock.advance(5_000);
  expect(receivedBy("http://one/")).toEqual(["first"]);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ state: "suspended" }]);
  const remedy = expect.stringContaining("give one a key");
  expect(warnings).toContainEqual(["subscription suspended", expect.objectContaining({ owner: "one", remedy })]);
  await insert("second", "one");
  await engine.clock.advance(1_000);
  await subscribe(by("second"), id);
  await engine.clock.advance(1_000);
  expect(receivedBy("http://one/")).toEqual(["first", "second"]);
});

it("delivers nothing to a subscription made without a credential until an admin resubscribes and so owns it", async () => {
  await engine.stop();
  const open = await TestEngine.start({ store: engine.store, chain: engine.chain });
  const id = await open.subscribe("a/#", { url: "http://old/" });
  await open.stop();
  engine = await TestEngine.start({ keys: { apiKeys: keys, roles, sha256 }, store: engine.store, chain: engine.chain });
  calls = engine.running.calls;
  await publish(by("one"), "event");
  await engine.clock.advance(1_000);
  expect(receivedBy("http://old/")).toEqual([]);
  expect(await codeOf(() => subscribe(by("one"), id, "http://old/"))).toBe(100_702);
  await subscribe(by("operator"), id, "http://old/");
  await engine.clock.advance(1_000);
  expect(receivedBy("http://old/")).toEqual(["event"]);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ id, principal: "operator" }]);
});

const attachRequest = (over: Partial<AttachRequest> = {}): AttachRequest => ({
  groupId: undefined,
  protocol: "MQTT",
  key: "device",
  isClean: false,
  windowMax: 10,
  onConnected: () => {},
  will: undefined,
  expiryMs: 3_600_000,
  ...over,
});
const filter = { filter: "a/#", qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;

it("gives each of two principals with the same client name its own session, and neither can end the session of the other", async () => {
  const [mine, theirs] = [new RecordingPeer(), new RecordingPeer()];
  const one = await calls.attach(by("one"), attachRequest(), mine);
  const other = await calls.attach(by("other"), attachRequest(), theirs);
  expect(other.session.id).not.toBe(one.session.id);
  expect(mine.endedBecause).toBeUndefined();
  await one.subscribe([filter as never]);
  const listed = await calls.listSubscriptions(by("operator"));
  const id = listed[0]?.subscriptions[0]?.id ?? "";
  expect(await codeOf(() => calls.unSubscribe(by("other"), { subscriptionId: id }))).toBe(100_504);
  expect(one.session.filterCount).toBe(1);
  await calls.unSubscribe(by("one"), { subscriptionId: id });
  expect(one.session.filterCount).toBe(0);
});

it("delays answers to wrong keys from an address, but not to a right key from the same address", () => {
  const wrong = formatKeyCredential({ id: idOf("one"), secret: "A".repeat(43) });
  for (let count = 0; count < 20; count += 1) expect(calls.authenticate(wrong, testCaller)).not.toBeInstanceOf(Promise);
  expect(calls.authenticate(wrong, testCaller)).toBeInstanceOf(Promise);
  expect(by("one").principal).toMatchObject({ kind: "known", id: "one" });
  expect(calls.authenticate(wrong, { ...testCaller, address: "10.0.0.1" })).not.toBeInstanceOf(Promise);
});

it("closes connections without an answer when an address sends too many wrong keys, and accepts few new ones from it", async () => {
  const wrong = formatKeyCredential({ id: idOf("one"), secret: "A".repeat(43) });
  const address = "192.0.2.1";
  const tries = 20 + heldPerAddressMax + 1;
  const answers = Array.from({ length: tries }, () => calls.authenticate(wrong, { ...testCaller, address }));
  expect(await answers.at(-1)).toMatchObject({ kind: "rejected", isClosed: true });
  expect([countTaken(address), countTaken("192.0.2.2")]).toEqual([floodConnectionsMax, 500]);
});

/** How many of 500 new connections of an address are accepted. */
function countTaken(address: string): number {
  return Array.from({ length: 500 }, () => calls.mayConnect(() => address)).filter((isTaken) => isTaken).length;
}

it("refuses connections and tails without a valid credential, and stores no session for them", async () => {
  const wrong = calls.authenticate(formatKeyCredential({ id: idOf("one"), secret: "A".repeat(43) }), testCaller);
  for (const principal of [testCaller.principal, await wrong]) {
    const caller = { ...testCaller, principal };
    expect(await codeOf(() => calls.admit(caller))).toBe(100_701);
    const kept = attachRequest({ isClean: false, expiryMs: 60_000 });
    expect(await codeOf(() => calls.attach(caller, kept, new RecordingPeer()))).toBe(100_701);
    const tail = { groupId: undefined, after: "wrong", lastEventId: undefined, onConnected: () => {} };
    for (const filters of [[], ["$share/s/#"]])
      expect(await codeOf(() => calls.tail(caller, { ...tail, filters }, new RecordingPeer()))).toBe(100_701);
  }
  expect(await engine.store.sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
});

it("rejects a tenant's subscription identifier as malformed, except from an admin", async () => {
  const id = "globex/5f1c0b2e-0000-4000-8000-000000000003";
  const malformed = 100_505;
  expect(await codeOf(() => subscribe(by("one"), id))).toBe(malformed);
  expect(await codeOf(() => calls.unSubscribe(by("one"), { subscriptionId: id }))).toBe(malformed);
  expect(await codeOf(() => calls.unSubscribe(by("operator"), { subscriptionId: id }))).toBe(100_504);
});

it("checks the receiver only for the owner, so that others do not learn its answer", async () => {
  const id = await subscribe(by("one"));
  const asked: string[] = [];
  engine.sink.checkTarget = async ({ url }) => void asked.push(url);
  expect(await codeOf(() => subscribe(by("other"), id))).toBe(100_702);
  expect(asked).toEqual([]);
  await subscribe(by("one"), id);
  expect(asked).toEqual(["http://one/"]);
});

it("refuses a stream to a caller that lacks the right to one of its filters, and to another principal even while the owner's client is away", async () => {
  const stream = { acknowledges: true, offset: undefined };
  const id = "5f1c0b2e-0000-4000-8000-000000000004";
  const request = (...filters: readonly string[]) =>
    attachRequest({ protocol: "STOMP", key: id, stream: { ...stream, filters } });
  expect(await codeOf(() => calls.attach(by("one"), request("a/#", "#"), new RecordingPeer()))).toBe(100_702);
  const attached = await calls.attach(by("one"), request("a/#"), new RecordingPeer());
  attached.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(1_000);
  expect(await codeOf(() => calls.attach(by("other"), request("a/#"), new RecordingPeer()))).toBe(100_702);
  expect(await codeOf(() => calls.attach(by("one"), request("a/#"), new RecordingPeer()))).toBeUndefined();
});

it("lets a will open its topic only if the will's principal has the right to open", async () => {
  await insert("publisher", "publisher");
  await engine.clock.advance(1_000);
  for (const [name, topic] of [
    ["publisher", "a/not-opened"],
    ["one", "a/opened"],
  ] as const) {
    const call = { topic, groupId: undefined, content: new Uint8Array([1]), extensions: [] };
    const will = { delayMs: 0, call, opensTopic: true, expiresAfterMs: undefined };
    const attached = await calls.attach(by(name), attachRequest({ will, expiryMs: 0 }), new RecordingPeer());
    attached.detach({ expiryMs: 0, isRegular: false });
    await engine.clock.advance(1_000);
  }
  const { topics } = await calls.list(by("operator"), { pageIndex: 0, pageSize: 9, groupId: undefined });
  expect(topics.map(({ name }) => name)).toEqual(["a/b", "a/opened"]);
});

it("refuses a transaction or a pass with an event that the caller has no right to publish", async () => {
  const call = { groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const [own, foreign] = [
    { ...call, topic: "a/b" },
    { ...call, topic: "b" },
  ];
  for (const calls_ of [
    [own, foreign],
    [foreign, own],
  ]) {
    expect(await codeOf(() => calls.submitAll(by("one"), calls_, () => {}))).toBe(100_702);
  }
  expect(await codeOf(() => calls.pass(by("one"), foreign))).toBe(100_702);
});

it("a stream still belongs to its owner after an admin attached to it: the owner can attach again", async () => {
  const id = "5f1c0b2e-0000-4000-8000-000000000001";
  const stream = { filters: ["a/#"], acknowledges: true, offset: undefined };
  for (const expiryMs of [3_600_000, 0]) {
    const own = attachRequest({ protocol: "STOMP", key: id, stream, expiryMs });
    const [mine, theirs] = [new RecordingPeer(), new RecordingPeer()];
    await calls.attach(by("one"), own, mine);
    await calls.attach(by("operator"), own, theirs);
    expect(mine.endedBecause).toBe("taken-over");
    expect(await codeOf(() => calls.attach(by("other"), own, new RecordingPeer()))).toBe(100_702);
    const back = await calls.attach(by("one"), own, new RecordingPeer());
    expect(theirs.endedBecause).toBe("taken-over");
    await back.end();
  }
});

it("lets the owner end a stream to which an admin is connected, but no other client", async () => {
  const id = "5f1c0b2e-0000-4000-8000-000000000002";
  const stream = { filters: ["a/#"], acknowledges: true, offset: undefined };
  for (const expiryMs of [3_600_000, 0]) {
    const own = attachRequest({ protocol: "STOMP", key: id, stream, expiryMs });
    const theirs = new RecordingPeer();
    await calls.attach(by("one"), own, new RecordingPeer());
    await calls.attach(by("operator"), own, theirs);
    expect(await codeOf(() => calls.unSubscribe(by("other"), { subscriptionId: id }))).toBe(100_504);
    expect(theirs.endedBecause).toBeUndefined();
    expect(await codeOf(() => calls.unSubscribe(by("one"), { subscriptionId: id }))).toBeUndefined();
    expect(theirs.endedBecause).toBeDefined();
  }
});

it("refuses a connection without a credential, a will without the right, and filters and shares without the right", async () => {
  expect(await codeOf(() => calls.attach(testCaller, attachRequest(), new RecordingPeer()))).toBe(100_701);
  const call = { topic: "b", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const will = { delayMs: 0, call, opensTopic: false, expiresAfterMs: undefined };
  expect(await codeOf(() => calls.attach(by("one"), attachRequest({ will }), new RecordingPeer()))).toBe(100_702);
  const attached = await calls.attach(by("one"), attachRequest(), new RecordingPeer());
  const share = { ...filter, filter: "$share/x/a/#" };
  const wide = { ...filter, filter: "#" };
  const wideShare = { ...filter, filter: "$share/x/#" };
  const answers = await attached.subscribe([filter, wide, share, wideShare] as never);
  expect(answers.map((answer) => (typeof answer === "object" ? answer.code : answer))).toEqual([
    true,
    100_702,
    true,
    100_702,
  ]);
});

it("ends a connection within a second of the revocation of its key", async () => {
  const peer = new RecordingPeer();
  await calls.attach(by("one"), attachRequest(), peer);
  await keys.revokeApiKey(idOf("one"), engine.clock.now());
  await engine.clock.advance(1_000);
  expect(peer.endedBecause).toBe("refused");
});

it("a node is not ready if it could not read the keys for 30 seconds, since it refuses everybody", async () => {
  const readiness = () => calls.health(testCaller).map(({ ready }) => ready);
  const read = keys.listApiKeys.bind(keys);
  keys.listApiKeys = () => Promise.reject(new Error("gone"));
  await engine.clock.advance(keysStaleMsMax - 1_000);
  expect(readiness()).toEqual([true]);
  await engine.clock.advance(2_000);
  expect(readiness()).toEqual([false]);
  expect(calls.health(testCaller)[0]?.reason).toContain("the keys cannot be read");
  keys.listApiKeys = read;
  await engine.clock.advance(1_000);
  expect(readiness()).toEqual([true]);
});

it("treats the same publish key of two principals as two keys", async () => {
  const first = publish(by("one"), "mine", "key");
  await engine.clock.advance(100);
  const second = publish(by("other"), "theirs", "key");
  await engine.clock.advance(100);
  expect([await first, await second]).toMatchObject([{ status: "SUCCESS" }, { status: "SUCCESS" }]);
  const repeat = publish(by("one"), "mine", "key");
  await engine.clock.advance(100);
  expect(await repeat).toEqual(await first);
});
