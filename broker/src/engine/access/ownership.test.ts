import { createHash } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachOrder, Broker } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { keysStaleMsMax } from "./key-ring.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const client: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "publish", "subscribe", "unsubscribe", "read"], filter: "a/#" },
];
const admin: readonly AccessRule[] = [
  { effect: "allow", actions: ["admin", "subscribe", "unsubscribe", "open", "publish"] },
];
const roles = new Map([
  ["client", client],
  ["admin", admin],
]);
const names = { one: "1", other: "2", operator: "3", second: "4" } as const;
const idOf = (name: keyof typeof names): string => names[name].repeat(16);
const secret = "s".repeat(43);

let keys: MemoryApiKeys;
let engine: TestEngine;
let calls: Broker;
beforeEach(async () => {
  keys = new MemoryApiKeys();
  for (const name of ["one", "other", "operator"] as const) await insert(name, name);
  engine = await TestEngine.start({ keys: { apiKeys: keys, roles, sha256 } });
  calls = engine.running.calls;
  await calls.open(by("one"), { topic: "a/b", groupId: undefined });
});
afterEach(() => engine.stop());

async function insert(name: keyof typeof names, principal: string): Promise<void> {
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const role = name === "operator" ? "admin" : "client";
  const own = { id: idOf(name), digest: sha256(secret), principal, tenant: undefined, roles: [role] };
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

const order = { topic: "a/#", groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
const subscribe = (caller: Caller, subscriptionId?: string, url = "http://one/") =>
  calls.subscribe(caller, { ...order, url, subscriptionId });

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

it("only the owner or an admin continues or ends a subscription", async () => {
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

it("of two principals that make a subscription of one identifier at once, one is refused", async () => {
  const id = "00000000-0000-4000-8000-00000000abcd";
  const made = [subscribe(by("one"), id), subscribe(by("other"), id, "http://thief/")];
  const outcomes = await Promise.all(made.map((one) => codeOf(() => one)));
  expect(outcomes).toEqual([undefined, 100_702]);
  expect(await engine.store.listSubscriptions()).toMatchObject([
    { principal: "one", delivery: { url: "http://one/" } },
  ]);
});

it("a revoked key ends callbacks at the cursor, and another key of the same principal continues them", async () => {
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
  await insert("second", "one");
  await engine.clock.advance(1_000);
  await subscribe(by("second"), id);
  await engine.clock.advance(1_000);
  expect(receivedBy("http://one/")).toEqual(["first", "second"]);
});

it("a subscription that was made without a credential waits until an admin takes it", async () => {
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

const attachOrder = (over: Partial<AttachOrder> = {}): AttachOrder => ({
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

it("the same client name of two principals is two sessions, and neither ends the other's", async () => {
  const [mine, theirs] = [new RecordingPeer(), new RecordingPeer()];
  const one = await calls.attach(by("one"), attachOrder(), mine);
  const other = await calls.attach(by("other"), attachOrder(), theirs);
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

it("slows who gives wrong keys from one address, and never who gives a right one", () => {
  const wrong = formatKeyCredential({ id: idOf("one"), secret: "A".repeat(43) });
  for (let count = 0; count < 20; count += 1) expect(calls.authenticate(wrong, testCaller)).not.toBeInstanceOf(Promise);
  expect(calls.authenticate(wrong, testCaller)).toBeInstanceOf(Promise);
  expect(by("one").principal).toMatchObject({ kind: "known", id: "one" });
  expect(calls.authenticate(wrong, { ...testCaller, address: "10.0.0.1" })).not.toBeInstanceOf(Promise);
});

it("a stream that an admin attaches to stays its owner's, who may take it back", async () => {
  const id = "5f1c0b2e-0000-4000-8000-000000000001";
  const stream = { filters: ["a/#"], acknowledges: true, offset: undefined };
  for (const expiryMs of [3_600_000, 0]) {
    const own = attachOrder({ protocol: "STOMP", key: id, stream, expiryMs });
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

it("refuses a connection without a right credential, a filter without the right, and a will", async () => {
  expect(await codeOf(() => calls.attach(testCaller, attachOrder(), new RecordingPeer()))).toBe(100_701);
  const call = { topic: "b", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const will = { delayMs: 0, call, opensTopic: false, expiresAfterMs: undefined };
  expect(await codeOf(() => calls.attach(by("one"), attachOrder({ will }), new RecordingPeer()))).toBe(100_702);
  const attached = await calls.attach(by("one"), attachOrder(), new RecordingPeer());
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
  await calls.attach(by("one"), attachOrder(), peer);
  await keys.revokeApiKey(idOf("one"), engine.clock.now());
  await engine.clock.advance(1_000);
  expect(peer.endedBecause).toBe("refused");
});

it("is not ready while it has not read the keys for long, since it refuses everybody", async () => {
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

it("a publish key of one principal is free to another", async () => {
  const first = publish(by("one"), "mine", "key");
  await engine.clock.advance(100);
  const second = publish(by("other"), "theirs", "key");
  await engine.clock.advance(100);
  expect([await first, await second]).toMatchObject([{ status: "SUCCESS" }, { status: "SUCCESS" }]);
  const repeat = publish(by("one"), "mine", "key");
  await engine.clock.advance(100);
  expect(await repeat).toEqual(await first);
});
