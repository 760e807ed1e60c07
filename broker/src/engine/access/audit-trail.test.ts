import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { AuditLine, AuditLog } from "../../ports/audit-log.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachRequest, Broker } from "../broker.ts";
import { defaultEngineLimits } from "../limits.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { leftOutAfterMs } from "./audit-trail.ts";
import { type Caller, toOwnerId } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const rules: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "close", "publish", "subscribe", "unsubscribe", "read"], filter: "a/#" },
];
const everything: readonly AccessRule[] = [{ effect: "allow", actions: ["admin", "read", "subscribe"] }];
const roles = new Map([
  ["client", rules],
  ["admin", everything],
]);
const ids = { client: "1".repeat(16), admin: "2".repeat(16) };

class RecordedAuditLog implements AuditLog {
  readonly lines: AuditLine[] = [];
  trouble: string | undefined;

  write(line: AuditLine): void {
    this.lines.push(line);
  }

  findTrouble(): string | undefined {
    return this.trouble;
  }
}

let log: RecordedAuditLog;
let engine: TestEngine;
let calls: Broker;
let apiKeys: MemoryApiKeys;
beforeEach(async () => {
  log = new RecordedAuditLog();
  apiKeys = new MemoryApiKeys();
  for (const role of ["client", "admin"] as const) await addKey(ids[role], role);
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 }, auditLog: log });
  calls = engine.running.calls;
});
afterEach(() => engine.stop());

function addKey(id: string, role: keyof typeof ids): Promise<boolean> {
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const own = { id, digest: sha256(secret), principal: role, tenant: undefined, roles: [role] };
  return apiKeys.insertApiKey({ ...own, ...times }, 10);
}

function by(role: keyof typeof ids, protocol: Caller["protocol"] = "REST"): Caller {
  return byKey(ids[role], protocol);
}

function byKey(id: string, protocol: Caller["protocol"] = "REST"): Caller {
  const principal = calls.authenticate(formatKeyCredential({ id, secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal, protocol };
}

const who = { principal: "client", tenant: undefined, keyId: ids.client, address: "127.0.0.1" };
const topic = { topic: "a/b", groupId: undefined };
const call = { ...topic, content: Buffer.from("x"), extensions: [] };
const other = { topic: "b", groupId: undefined };
const denied = { outcome: "refused", code: 100_702 };

it("writes a line for each open, subscribe, resubscribe, unsubscribe and close, without secrets", async () => {
  const caller = by("client");
  await calls.open(caller, topic);
  const request = { ...topic, url: "http://user:password@receiver/path?token=x", format: "RESTful" } as const;
  const more = { offset: undefined, secret: secretNamed("a") };
  const subscriptionId = await calls.subscribe(caller, { ...request, ...more, subscriptionId: undefined });
  await calls.subscribe(caller, { ...request, ...more, subscriptionId });
  await calls.unSubscribe(caller, { subscriptionId });
  await calls.close(caller, topic);
  const done = { ...who, protocol: "REST", outcome: "done", time: engine.clock.now() };
  const receiver = "http://receiver";
  expect(log.lines).toEqual([
    { ...done, action: "open", ...topic },
    { ...done, action: "subscribe", ...topic, receiver, subscriptionId },
    { ...done, action: "resubscribe", ...topic, receiver, subscriptionId },
    { ...done, action: "unsubscribe", subscriptionId },
    { ...done, action: "close", ...topic },
  ]);
  expect(JSON.stringify(log.lines)).not.toMatch(/password|token|whsec/);
});

it("writes each refusal, but no publish or read that succeeds", async () => {
  const caller = by("client", "JSON-RPC");
  await calls.open(caller, topic);
  await calls.exist(caller, topic);
  const settled: unknown[] = [];
  calls.submit(caller, call, (outcome) => settled.push(outcome));
  await engine.clock.settle();
  expect(settled).toMatchObject([{ status: "SUCCESS" }]);
  expect(log.lines).toHaveLength(1);
  expect(() => calls.submit(caller, { ...call, ...other }, () => {})).toThrow();
  expect(() => calls.submitAll(caller, [call, { ...call, ...other }], () => {})).toThrow();
  await expect(calls.state(caller, other)).rejects.toThrow();
  await expect(calls.list(caller, { pageIndex: 0, pageSize: 1, groupId: undefined })).rejects.toThrow();
  await expect(calls.listSubscriptions(caller)).rejects.toThrow();
  expect(() => calls.authorize(caller, "chain")).toThrow();
  await expect(
    calls.getEvent({ ...caller, principal: { kind: "anonymous" } }, { eventId: "x", groupId: "1" }),
  ).rejects.toThrow();
  expect(() => calls.health({ ...caller, principal: { kind: "anonymous" } }, "2")).toThrow();
  expect(() => calls.rightsOf({ ...caller, principal: { kind: "anonymous" } })).toThrow();
  expect(log.lines.slice(1)).toMatchObject([
    { ...who, action: "publish", ...other, ...denied, protocol: "JSON-RPC", reason: 'not allowed: publish "b"' },
    { ...who, action: "publish", ...denied },
    { action: "state", ...other, ...denied },
    { action: "list", ...denied },
    { action: "listSubscription", ...denied },
    { action: "chain", ...denied },
    { action: "getEvent", principal: "anonymous", code: 100_701, eventId: "x", groupId: "1" },
    { action: "health", principal: "anonymous", code: 100_701, groupId: "2" },
    { action: "access", principal: "anonymous", code: 100_701 },
  ]);
});

it("writes which filters a connection adds and removes, and that a publish opens its topic", async () => {
  const caller = by("client", "MQTT");
  const request: AttachRequest = {
    groupId: undefined,
    protocol: "MQTT",
    key: "one",
    isClean: true,
    windowMax: 1,
    onConnected: () => {},
    will: undefined,
    expiryMs: 0,
  };
  const attached = calls.attach(caller, request, new RecordingPeer());
  await engine.clock.settle();
  const attachment = await attached;
  const [filter, forbidden] = [parseTopicFilter("a/#"), parseTopicFilter("#")];
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([
    { filter, ...options },
    { filter: forbidden, ...options },
  ]);
  await attachment.unsubscribe([filter, forbidden]);
  const placement = { onOpening: () => {}, onPlaced: () => {} };
  calls.submit(caller, { ...call, placement }, () => {});
  await engine.clock.settle();
  expect(log.lines).toMatchObject([
    { action: "subscribe", outcome: "done", topic: "a/#", protocol: "MQTT" },
    { action: "subscribe", topic: "#", ...denied },
    { action: "unsubscribe", outcome: "done", topic: "a/#" },
    { action: "open", outcome: "done", topic: "a/b", ...who },
  ]);
});

/** Opens a stream by an admin, and ends it. */
async function stream(protocol: "STOMP" | "tail", filters: readonly string[]): Promise<void> {
  const caller = by("admin", protocol);
  const [groupId, onConnected] = [undefined, () => {}];
  const start = { groupId, filters, after: undefined, lastEventId: undefined, onConnected };
  const from = { filters, acknowledges: false, offset: undefined };
  const kept = { key: crypto.randomUUID(), isClean: true, windowMax: 1, will: undefined, expiryMs: 0 };
  const opened =
    protocol === "tail"
      ? calls.tail(caller, start, new RecordingPeer())
      : calls.attach(caller, { ...kept, protocol, groupId, stream: from, onConnected }, new RecordingPeer());
  await engine.clock.settle();
  await (await opened).end();
}

it.each([
  ["STOMP", "subscribe", 3],
  ["tail", "tail", 1],
] as const)(
  "names all 1,000 filters of a new stream in few lines, or none of them over the limit (%s)",
  async (...[protocol, action, written]) => {
    const filters = Array.from({ length: 1_000 }, (_, index) => `${index}/${"x ".repeat(100)}`);
    for (let streams = 0; streams < 20; streams += 1) await stream(protocol, filters);
    const lines = log.lines.filter((line) => line.action === action);
    expect(lines).toHaveLength(written * 53);
    for (const line of lines) expect(line).toMatchObject({ outcome: "done", principal: "admin" });
    const topics = lines.map((line) => line.topic ?? "");
    expect(Math.max(...topics.map(({ length }) => length))).toBeLessThanOrEqual(4_096);
    expect(topics.join("\n").split("\n")).toEqual(Array.from({ length: written }, () => filters).flat());
  },
);

it("logs the filters of a session even after tails have used up their own limit of lines", async () => {
  for (let tails = 0; tails < 300; tails += 1) await stream("tail", ["a", "b"]);
  await stream("STOMP", ["salaries/#"]);
  expect(log.lines.filter(({ action }) => action === "tail")).toHaveLength(20);
  expect(log.lines).toContainEqual(expect.objectContaining({ action: "subscribe", topic: "salaries/#" }));
});

it("writes that the outcome of an open is unknown if it times out, even if a publish caused it", async () => {
  const caller = by("client");
  const { store } = engine;
  const applyBlocks = store.applyBlocks.bind(store);
  store.applyBlocks = () => Promise.reject(new BrokerError("storeUnreachable"));
  const opened = calls.open(caller, topic).catch((error: unknown) => error);
  const placement = { onOpening: () => {}, onPlaced: () => {} };
  const settled: unknown[] = [];
  calls.submit(caller, { ...call, topic: "a/c", placement }, (outcome) => settled.push(outcome));
  await engine.clock.advance(2 * defaultEngineLimits.transactionTimeoutMs);
  store.applyBlocks = applyBlocks;
  expect([await opened, ...settled]).toMatchObject([{ code: 200_201 }, { status: "TIMEOUT" }]);
  const failed = { action: "open", outcome: "failed", code: 200_201, ...who };
  expect(log.lines).toMatchObject([
    { ...failed, topic: "a/b" },
    { ...failed, topic: "a/c" },
  ]);
});

it("writes what an operator reads, except health", async () => {
  const caller = by("admin", "admin");
  calls.authorize(caller, "administer");
  await calls.listSkippedEntries(caller, { groupId: undefined, limit: undefined });
  calls.health(caller);
  calls.authorize(caller, "inspect");
  expect(() => calls.authorize({ ...caller, principal: { kind: "anonymous" } }, "inspect")).toThrow();
  expect(log.lines).toMatchObject([
    { action: "administer", outcome: "done", principal: "admin" },
    { action: "skippedEntries", outcome: "done" },
  ]);
});

it("writes a failed log-in with its address, without the credential", () => {
  const origin = { address: "192.0.2.1", protocol: "MQTT" } as const;
  void calls.authenticate("a password", origin);
  void calls.authenticate(formatKeyCredential({ id: ids.client, secret: "w".repeat(43) }), origin);
  const line = { action: "log in", outcome: "refused", ...origin };
  expect(log.lines).toMatchObject([line, line]);
  expect(JSON.stringify(log.lines)).not.toMatch(/a password|wwww/);
});

const refuse = (caller: Caller): void => expect(() => calls.submit(caller, { ...call, ...other }, () => {})).toThrow();

it("writes 20 refusals of one principal at once, and then how many it left out, each time", async () => {
  const [noisy, quiet] = [by("client"), by("admin")];
  for (let index = 0; index < 1_000; index += 1) refuse(noisy);
  refuse(quiet);
  expect(log.lines).toHaveLength(21);
  expect(log.lines.at(-1)).toMatchObject({ principal: "admin", ...denied });
  await engine.clock.advance(leftOutAfterMs);
  expect(log.lines.slice(21)).toMatchObject([{ outcome: "left out", count: 980 }]);
  await engine.clock.advance(10 * leftOutAfterMs);
  expect(log.lines).toHaveLength(22);
  for (let index = 0; index < 100; index += 1) refuse(noisy);
  await engine.clock.advance(leftOutAfterMs);
  expect(log.lines.slice(42)).toMatchObject([{ outcome: "left out", count: 80 }]);
});

it("leaves out no read with a valid key because of wrong keys, or because of a revoked key of its principal", async () => {
  const id = "3".repeat(16);
  const revoked = by("admin");
  await addKey(id, "admin");
  await apiKeys.revokeApiKey(ids.admin, engine.clock.now());
  await engine.clock.advance(1_000);
  for (let index = 0; index < 300; index += 1) {
    const origin = { address: `192.0.2.${index}`, protocol: "MQTT" } as const;
    void calls.authenticate("wrong", origin);
    void calls.authenticate(formatKeyCredential({ id: ids.admin, secret }), origin);
    expect(() => calls.authorize({ ...revoked, ...origin }, "administer")).toThrow();
  }
  expect(log.lines).toHaveLength(200);
  calls.authorize(byKey(id), "administer");
  expect(log.lines.slice(200)).toMatchObject([
    { principal: "admin", keyId: id, action: "administer", outcome: "done" },
  ]);
});

it("leaves out no read of an operator because of the many principals of one tenant", () => {
  const caller = by("client");
  for (let index = 0; index < 300; index += 1) {
    const owner = { id: toOwnerId(`shop${index}`, "acme"), tenant: "acme" };
    refuse({ ...caller, principal: { ...caller.principal, ...owner } });
  }
  expect(log.lines).toHaveLength(100);
  calls.authorize(by("admin"), "administer");
  expect(log.lines.slice(100)).toMatchObject([{ principal: "admin", action: "administer", outcome: "done" }]);
});

/** Connects by MQTT, and subscribes to one filter again and again. */
async function subscribeAgain(caller: Caller, times: number): Promise<void> {
  const request = { groupId: undefined, protocol: "MQTT", key: "one", isClean: true, windowMax: 1 } as const;
  const rest = { onConnected: () => {}, will: undefined, expiryMs: 0 };
  const attached = calls.attach(caller, { ...request, ...rest }, new RecordingPeer());
  await engine.clock.settle();
  const attachment = await attached;
  const filter = parseTopicFilter("a/#");
  const options = { qos: 0, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  for (let index = 0; index < times; index += 1) await attachment.subscribe([{ filter, ...options }]);
}

it("leaves out no filter because of the many principals of one tenant", async () => {
  const caller = by("admin", "MQTT");
  for (let index = 0; index < 12; index += 1) {
    const owner = { id: toOwnerId(`shop${index}`, "acme"), tenant: "acme" };
    await subscribeAgain({ ...caller, principal: { ...caller.principal, ...owner } }, 200);
  }
  expect(log.lines).toHaveLength(1_000);
  await stream("STOMP", ["salaries/#"]);
  expect(log.lines[1_000]).toMatchObject({ action: "subscribe", principal: "admin", topic: "salaries/#" });
});

it("limits the lines about filters and about calls that change nothing, but writes every change", async () => {
  const caller = by("client", "MQTT");
  for (let index = 0; index < 1_000; index += 1) await calls.open(caller, topic);
  await subscribeAgain(caller, 1_000);
  for (let index = 0; index < 100; index += 1) {
    await calls.close(caller, topic);
    await calls.close(caller, topic);
    await calls.open(caller, topic);
  }
  const count = (action: string): number => log.lines.filter((line) => line.action === action).length;
  expect([count("open"), count("close"), count("subscribe")]).toEqual([121, 100, 200]);
  await engine.clock.advance(leftOutAfterMs);
  expect(log.lines.at(-1)).toMatchObject({ outcome: "left out", count: 979 + 100 + 800 });
});

it("on stop, writes how many refusals it left out", async () => {
  for (let index = 0; index < 30; index += 1)
    void calls.authenticate("wrong", { address: "192.0.2.1", protocol: "STOMP" });
  await engine.stop();
  expect(log.lines.at(-1)).toMatchObject({ outcome: "left out", count: 10 });
});

it("shortens a long topic that a client sent", () => {
  const long = { ...call, topic: "x".repeat(1_000_000) };
  expect(() => calls.submit(by("client"), long, () => {})).toThrow();
  expect(JSON.stringify(log.lines).length).toBeLessThan(2_000);
});

it("writes all rules of a changed role, since a shortened text could hide what the role allows", async () => {
  const filters = Array.from({ length: 20 }, (_, index) => `orders/of/customer/${index}/#`);
  const long = filters.map((filter): AccessRule => ({ effect: "allow", actions: ["read"], filter }));
  await engine.running.operator.setRole(by("admin"), "clerk", long);
  const written = log.lines.filter(({ action }) => action === "role set");
  expect(written.map(({ outcome, rules: text }) => [outcome, text])).toEqual([
    ["begun", JSON.stringify(long)],
    ["done", JSON.stringify(long)],
  ]);
});

it("health warns when the audit log cannot be written", () => {
  expect(engine.running.groupHealth()).not.toMatchObject([{ warning: expect.anything() }]);
  log.trouble = "the audit log cannot be written: ENOSPC";
  expect(engine.running.groupHealth()).toMatchObject([{ ready: true, warning: log.trouble }]);
});
