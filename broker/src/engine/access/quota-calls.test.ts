import { afterEach, beforeEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachRequest, PublishCall } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { refusalHeldMsMax } from "./held-refusals.ts";
import { formatKeyCredential } from "./credential.ts";
import { secret, sha256 } from "../testing/key-secret.ts";

const ids = { shop: "1".repeat(16), till: "2".repeat(16) } as const;
const rules: readonly AccessRule[] = [{ effect: "allow", actions: ["open", "publish", "subscribe"] }];
const call: PublishCall = { topic: "a", groupId: undefined, content: Buffer.from("x"), extensions: [] };

const refusal = expect.objectContaining({ code: 200_301 });

let engine: TestEngine;
beforeEach(async () => {
  const apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (const principal of ["shop", "till"] as const) {
    const key = { id: ids[principal], digest: sha256(secret), principal, tenant: "acme", roles: ["all"], ...times };
    await apiKeys.insertApiKey(key, 10);
  }
  const quotas = { tenants: { acme: { publishesPerSecond: 2, connections: 1 } }, principals: {} };
  engine = await TestEngine.start({ keys: { apiKeys, roles: new Map([["all", rules]]), quotas, sha256 } });
  await engine.running.calls.open(caller(), { topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

function caller(name: keyof typeof ids = "shop"): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: ids[name], secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal, signal: new AbortController().signal };
}

it("refuses a publish or a transaction over the quota within 500 ms, and commits none of it", async () => {
  const { calls } = engine.running;
  const settled: unknown[] = [];
  const settle = (outcome: unknown): void => void settled.push(outcome);
  for (let index = 0; index < 3; index += 1) calls.submit(caller(), call, settle);
  calls.submitAll(caller(), [call], settle);
  await engine.clock.settle();
  expect(settled).toMatchObject([{ status: "SUCCESS" }, { status: "SUCCESS" }]);
  await engine.clock.advance(refusalHeldMsMax);
  const refused = { status: "REFUSED", error: refusal };
  expect(settled.slice(2)).toEqual([refused, refused]);
  await engine.clock.advance(2_000);
  calls.submitAll(caller(), [call, call], settle);
  calls.submit(caller(), call, settle);
  await engine.clock.advance(refusalHeldMsMax);
  expect(settled.slice(4)).toEqual([expect.objectContaining({ status: "SUCCESS" }), refused]);
  const page = await engine.store.listTopics(defaultGroupId, { offset: 0, limit: 1 });
  expect(page.topics).toMatchObject([{ sequence: 4 }]);
});

it("answers a repeat over the quota with the event of its earlier publish, and refuses a repeat without an earlier publish", async () => {
  const outcomes = new Map<string, unknown>();
  const send = (key: string, change: Partial<PublishCall>): void =>
    engine.running.calls.submit(caller(), { ...call, key, session: { id: "s" }, ...change }, (outcome) =>
      outcomes.set(key, outcome),
    );
  for (const key of ["1", "2"]) send(key, {});
  await engine.clock.advance(2_000);
  const earlier = new Map(outcomes);
  await engine.rebuild();
  await engine.broker.start();
  for (const key of ["3", "4", "1", "2", "5"]) send(key, { isRepeat: true });
  send("6", {});
  await engine.clock.advance(2_000);
  for (const key of ["1", "2"]) expect(outcomes.get(key)).toEqual(earlier.get(key));
  for (const key of ["3", "4"]) expect(outcomes.get(key)).toMatchObject({ status: "SUCCESS" });
  for (const key of ["5", "6"]) expect(outcomes.get(key)).toEqual({ status: "REFUSED", error: refusal });
  const page = await engine.store.listTopics(defaultGroupId, { offset: 0, limit: 1 });
  expect(page.topics).toMatchObject([{ sequence: 4 }]);
});

it("delays at most 2,000 refusals, and answers further ones at once", async () => {
  const { calls } = engine.running;
  const held = caller();
  let settled = 0;
  const settle = (): void => void (settled += 1);
  for (let index = 0; index < 2_002; index += 1) calls.submit(held, call, settle);
  await engine.clock.settle();
  expect(settled).toBe(2);
  calls.submit(held, call, settle);
  expect(settled).toBe(2);
  await engine.clock.settle();
  expect(settled).toBe(3);
  await engine.clock.advance(refusalHeldMsMax);
  expect(settled).toBe(2_003);
});

it("answers a repeat over the quota with the event of its earlier publish, however many refusals of others wait", async () => {
  const outcomes: unknown[] = [];
  const named = { ...call, key: "1", session: { id: "s" } };
  const send = (change: Partial<PublishCall>): void =>
    engine.running.calls.submit(caller("shop"), { ...named, ...change }, (outcome) => void outcomes.push(outcome));
  send({});
  await engine.clock.settle();
  for (let index = 0; index < 2_001; index += 1) engine.running.calls.submit(caller("till"), call, () => {});
  send({ isRepeat: true });
  await engine.clock.settle();
  expect(outcomes).toEqual([expect.objectContaining({ status: "SUCCESS" }), outcomes[0]]);
});

async function attach(by: Caller, key: string, peer = new RecordingPeer()): Promise<void> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: true, windowMax: 1 } as const;
  const more = { onConnected: () => {}, will: undefined, expiryMs: 0 };
  await Promise.all([engine.running.calls.attach(by, { ...request, ...more }, peer), engine.clock.settle()]);
}

it("refuses a connection over the quota, with a session or without", async () => {
  const { calls } = engine.running;
  calls.admit(caller());
  expect(() => calls.admit(caller())).toThrow(refusal);
  await expect(attach(caller(), "one")).rejects.toThrow(refusal);
});

it("counts a connection with a session", async () => {
  await attach(caller(), "one");
  expect(() => engine.running.calls.admit(caller())).toThrow(refusal);
});

it("lets a client take over its session at the quota, and refuses other clients", async () => {
  const former = new RecordingPeer();
  await attach(caller(), "one", former);
  await expect(attach(caller(), "two")).rejects.toThrow(refusal);
  await attach(caller(), "one");
  expect(former.endedBecause).toBe("taken-over");
  await expect(attach(caller(), "two")).rejects.toThrow(refusal);
});

it("refuses another principal at the quota, even with the same client identifier", async () => {
  const peer = new RecordingPeer();
  await attach(caller("shop"), "one", peer);
  await expect(attach(caller("till"), "one")).rejects.toThrow(refusal);
  expect(peer.endedBecause).toBeUndefined();
});

it("does not count a tail that is refused", async () => {
  const { calls } = engine.running;
  const request = { groupId: undefined, filters: ["a"], after: "1-1-1", lastEventId: undefined, onConnected: () => {} };
  const tailing = calls.tail(caller(), request, new RecordingPeer());
  const [outcome] = await Promise.allSettled([tailing, engine.clock.settle()]);
  expect(outcome.status).toBe("rejected");
  calls.admit(caller());
});

it("counts a tail already while its rights are checked", async () => {
  const { calls } = engine.running;
  const request = {
    groupId: undefined,
    filters: ["a", "b"],
    after: undefined,
    lastEventId: undefined,
    onConnected: () => {},
  };
  const soon = engine.clock.soon.bind(engine.clock);
  const turns: (() => void)[] = [];
  engine.clock.soon = (action) => void turns.push(action); // no turn comes
  const monotonic = engine.clock.monotonic.bind(engine.clock);
  let read = 0;
  engine.clock.monotonic = () => monotonic() + (read += 10); // each check uses up a slice
  const first = calls.tail(caller(), request, new RecordingPeer());
  const second = calls.tail(caller(), request, new RecordingPeer());
  await expect(second).rejects.toThrow(refusal);
  engine.clock.soon = soon;
  for (const turn of turns) turn();
  await Promise.all([first, engine.clock.settle()]);
});

it("counts a tail until its connection ends", async () => {
  const { calls } = engine.running;
  const request = {
    groupId: undefined,
    filters: ["a"],
    after: undefined,
    lastEventId: undefined,
    onConnected: () => {},
  };
  const connection = new AbortController();
  const tailing = calls.tail({ ...caller(), signal: connection.signal }, request, new RecordingPeer());
  await Promise.all([tailing, engine.clock.settle()]);
  await expect(calls.tail(caller(), request, new RecordingPeer())).rejects.toThrow(refusal);
  connection.abort();
  calls.admit(caller());
});

it("counts a will as a publish when its client connects", async () => {
  const { calls } = engine.running;
  const request = {
    groupId: undefined,
    protocol: "MQTT",
    key: "one",
    isClean: true,
    windowMax: 1,
    expiryMs: 0,
  } as const;
  const will = { delayMs: 0, call, opensTopic: false, expiresAfterMs: undefined };
  const connect = async (left: AttachRequest["will"]): Promise<void> => {
    const connection = new AbortController();
    const own = { ...request, will: left, onConnected: () => {} };
    try {
      await calls.attach({ ...caller(), signal: connection.signal }, own, new RecordingPeer());
    } finally {
      connection.abort();
    }
  };
  for (const left of [will, undefined, will]) await connect(left);
  await expect(connect(will)).rejects.toThrow(refusal);
  await connect(undefined);
});

it("counts a passed event as a publish", () => {
  const { calls } = engine.running;
  for (const _ of [1, 2]) void calls.pass(caller(), call);
  expect(() => calls.pass(caller(), call)).toThrow(refusal);
});
