import { afterEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { QuotaTable } from "../../domain/quota.ts";
import { toClientsId } from "../../domain/subscription.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachRequest, PublishOutcome } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { unknownCountedMs } from "./topic-quota.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const rules: readonly AccessRule[] = [
  { effect: "allow", actions: ["open", "publish", "subscribe", "unsubscribe", "read"] },
];
const idOf = (index: number): string => String(index).padStart(16, "0");

let engine: TestEngine;
afterEach(() => engine.stop());

/** Starts an engine with principals p0 to p6 of tenant acme, and p7 of tenant globex. */
async function start(acme: QuotaTable["tenants"][string], options: TestEngineOptions = {}): Promise<void> {
  const apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (let index = 0; index < 8; index += 1) {
    const tenant = index === 7 ? "globex" : "acme";
    const key = { id: idOf(index), digest: sha256(secret), principal: `p${index}`, tenant, roles: ["all"] };
    await apiKeys.insertApiKey({ ...key, ...times }, 10);
  }
  const quotas = { tenants: { acme }, principals: {} };
  engine = await TestEngine.start({ keys: { apiKeys, roles: new Map([["all", rules]]), quotas, sha256 }, ...options });
}

function caller(index: number): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: idOf(index), secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal, signal: new AbortController().signal };
}

const refusal = (text: string) =>
  expect.objectContaining({ code: 200_301, retryAfterMs: expect.any(Number), message: expect.stringContaining(text) });

/** Runs calls for ten seconds of virtual time, and returns how each ended. */
async function settle(calls: readonly Promise<unknown>[]): Promise<readonly PromiseSettledResult<unknown>[]> {
  const settled = Promise.allSettled(calls);
  await engine.clock.advance(10_000);
  return settled;
}
const made = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.filter(({ status }) => status === "fulfilled");
const reasons = (results: readonly PromiseSettledResult<unknown>[]) =>
  results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));

const hundred = Array.from({ length: 100 }, (_, index) => index);
const open = (by: number, topic: string) => engine.running.calls.open(caller(by), { topic, groupId: undefined });
const subscription = { groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
const subscribe = (by: number, url: string, subscriptionId?: string) =>
  engine.running.calls.subscribe(caller(by), { ...subscription, topic: "acme/#", url, subscriptionId });

it("a hundred concurrent opens of a tenant open exactly as many topics as its quota allows", async () => {
  await start({ topics: 10 });
  const results = await settle(hundred.map((index) => open(index % 7, `acme/${index}`)));
  expect(made(results)).toHaveLength(10);
  expect(reasons(results)).toEqual(Array.from({ length: 90 }, () => refusal('tenant "acme" may have 10 topics')));
  const { total } = await engine.store.listTopics("1" as never, { offset: 0, limit: 1 });
  expect(total).toBe(10);
  const again = await settle([open(0, "acme/0"), open(0, "$special"), open(7, "globex/a")]);
  expect(made(again)).toHaveLength(2);
  expect(reasons(again)).toEqual([refusal("10 topics")]);
});

it("a hundred publishes that open their topics open exactly as many topics as the quota allows", async () => {
  await start({ topics: 10 });
  const outcomes: PublishOutcome[] = [];
  const placement = { onOpening: () => {}, onPlaced: () => {} };
  for (const index of hundred) {
    const call = { topic: `acme/${index}`, groupId: undefined, content: Buffer.from("x"), extensions: [], placement };
    engine.running.calls.submit(caller(index % 7), call, (outcome) => outcomes.push(outcome));
  }
  await engine.clock.advance(10_000);
  expect(outcomes.filter(({ status }) => status === "SUCCESS")).toHaveLength(10);
  expect(outcomes.filter(({ status }) => status === "REFUSED")).toEqual(
    Array.from({ length: 90 }, () => ({ status: "REFUSED", error: refusal("10 topics") })),
  );
});

it("a hundred wills that open their topics open exactly as many topics as the quota allows", async () => {
  await start({ topics: 10 });
  const request = { groupId: undefined, protocol: "MQTT", isClean: true, windowMax: 1, expiryMs: 0 } as const;
  const lost = hundred.map(async (index) => {
    const call = { topic: `acme/${index}`, groupId: undefined, content: Buffer.from("x"), extensions: [] };
    const will = { delayMs: 0, call, opensTopic: true, expiresAfterMs: undefined };
    const own = { ...request, key: `k${index}`, will, onConnected: () => {} };
    const attachment = await engine.running.calls.attach(caller(index % 7), own, new RecordingPeer());
    attachment.detach({ expiryMs: 0, isRegular: false });
  });
  expect(made(await settle(lost))).toHaveLength(100);
  const { total } = await engine.store.listTopics("1" as never, { offset: 0, limit: 1 });
  expect(total).toBe(10);
});

it("counts a topic whose opening timed out for as long as it may still be opened", async () => {
  await start({ topics: 2 }, { confirmations: 20 });
  const openInTime = async (topic: string) => {
    const opened = Promise.allSettled([open(0, topic)]);
    await engine.clock.advance(100_000);
    return reasons(await opened);
  };
  const unknown = [expect.objectContaining({ code: 200_201 })];
  expect(await openInTime("acme/1")).toEqual(unknown);
  expect(await openInTime("acme/2")).toEqual(unknown);
  expect(await openInTime("acme/2")).toEqual(unknown);
  expect(await openInTime("acme/3")).toEqual([refusal("2 topics")]);
  await engine.clock.advance(unknownCountedMs);
  expect(await openInTime("acme/3")).toEqual(unknown);
});

it("a hundred concurrent subscribes make exactly as many subscriptions as the quota allows; a removed one makes room", async () => {
  await start({ subscriptions: 10 });
  const results = await settle(hundred.map((index) => subscribe(index % 7, `http://receiver/${index}`)));
  expect(made(results)).toHaveLength(10);
  expect(reasons(results)[0]).toEqual(refusal('tenant "acme" may have 10 subscriptions'));
  const [row] = await engine.store.listSubscriptions();
  const owner = Number(row?.principal?.at(-1));
  await settle([
    engine.running.calls.unSubscribe(caller(owner), { subscriptionId: row === undefined ? "" : toClientsId(row.id) }),
  ]);
  expect(made(await settle([subscribe(1, "http://receiver/"), subscribe(2, "http://receiver/")]))).toHaveLength(1);
});

it("limits the callback hosts of a tenant, even when a subscription moves to another url", async () => {
  await start({ callbackHosts: 2 });
  const [first] = await settle([subscribe(0, "http://a/"), subscribe(1, "http://b/"), subscribe(2, "http://a/2")]);
  const id = first?.status === "fulfilled" ? String(first.value) : "";
  const results = await settle([subscribe(3, "http://c/"), subscribe(0, "http://c/", id)]);
  expect(reasons(results)).toEqual(Array.from({ length: 2 }, () => refusal("may have 2 hosts of callbacks")));
  expect(made(await settle([subscribe(0, "http://b/3", id)]))).toHaveLength(1);
});

it("a hundred connections of a tenant keep exactly as many sessions as the quota allows", async () => {
  await start({ sessions: 10 });
  const request: AttachRequest = {
    groupId: undefined,
    protocol: "MQTT",
    key: "",
    isClean: false,
    windowMax: 1,
    onConnected: () => {},
    will: undefined,
    expiryMs: 60_000,
  };
  const attach = (index: number, expiryMs = 60_000) =>
    engine.running.calls.attach(caller(index % 7), { ...request, key: `k${index}`, expiryMs }, new RecordingPeer());
  const results = await settle(hundred.map((index) => attach(index)));
  expect(made(results)).toHaveLength(10);
  expect(reasons(results)[0]).toEqual(refusal('tenant "acme" may have 10 sessions'));
  expect(made(await settle([attach(200, 0)]))).toHaveLength(1);
});

it("makes a tenant's callbacks at the rate of its quota, and another tenant's at once", async () => {
  await start({ callbacksPerSecond: 5 });
  await settle([open(0, "acme/a"), open(7, "acme/a")]);
  await settle([
    ...hundred.slice(0, 10).map((index) => subscribe(index % 7, `http://greedy/${index}`)),
    subscribe(7, "http://quiet/"),
  ]);
  const of = (host: string) =>
    engine.sink.attempts.filter((attempt) => attempt.subscription.url.startsWith(`http://${host}/`)).length;
  for (let index = 0; index < 5; index += 1) {
    const call = { topic: "acme/a", groupId: undefined, content: Buffer.from("x"), extensions: [] };
    for (const tenant of [0, 7]) engine.running.calls.submit(caller(tenant), call, () => {});
  }
  await engine.clock.advance(1_000);
  expect(of("quiet")).toBe(5);
  expect(of("greedy")).toBeGreaterThanOrEqual(9);
  expect(of("greedy")).toBeLessThanOrEqual(11);
  await engine.clock.advance(8_000);
  expect(of("greedy")).toBeLessThanOrEqual(51);
  await engine.clock.advance(3_000);
  expect(of("greedy")).toBe(50);
});
