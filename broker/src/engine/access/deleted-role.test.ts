import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { AttachRequest } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { secret } from "../testing/key-secret.ts";

const sha256 = (text: string): string => text;
const allow = (...actions: AccessRule["actions"]): readonly AccessRule[] => [{ effect: "allow", actions }];
const roles = new Map([
  ["publisher", allow("open", "publish")],
  ["admin", allow("admin")],
]);
const ids = { publisher: "1".repeat(16), admin: "2".repeat(16), stored: "3".repeat(16) };
const groupId = undefined;

let engine: TestEngine;
beforeEach(async () => {
  const apiKeys = new MemoryApiKeys();
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  await apiKeys.putRole({ name: "stored", rules: allow("subscribe") }, 10);
  for (const [role, id] of Object.entries(ids)) {
    const key = { id, digest: sha256(secret), principal: role, tenant: undefined, roles: [role], ...times };
    await apiKeys.insertApiKey(key, 10);
  }
  engine = await TestEngine.start({ keys: { apiKeys, roles, sha256 }, confirmations: 0 });
  await engine.running.calls.open(by("publisher"), { topic: "a", groupId });
});
afterEach(() => engine.stop());

function by(role: keyof typeof ids): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id: ids[role], secret }), testCaller);
  if (principal instanceof Promise) throw new Error("a key is known at once");
  return { ...testCaller, principal };
}

const call = { topic: "a", groupId, format: "RESTful", offset: undefined, secret: undefined } as const;
const subscribe = (url: string, subscriptionId?: string) =>
  engine.running.calls.subscribe(by("stored"), { ...call, url, subscriptionId });
const publish = () =>
  engine.running.calls.submit(
    by("publisher"),
    { topic: "a", groupId, content: Buffer.from("x"), extensions: [] },
    () => {},
  );

async function attach(peer: RecordingPeer): Promise<void> {
  const request: AttachRequest = {
    groupId,
    protocol: "MQTT",
    key: "c",
    isClean: false,
    windowMax: 9,
    will: undefined,
    expiryMs: 60_000,
    onConnected: () => {},
  };
  const attaching = engine.running.calls.attach(by("stored"), request, peer);
  await engine.clock.settle();
  const attachment = await attaching;
  peer.ended = () => attachment.detach({ expiryMs: 60_000, isRegular: true });
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([{ ...how, filter: parseTopicFilter("a") }]);
}

it("an event that comes right after the role of a subscriber was deleted waits until the role is back", async () => {
  const { operator } = engine.running;
  const subscriptionId = await subscribe("http://receiver/");
  const before = new RecordingPeer();
  await attach(before);
  await operator.deleteRole(by("admin"), "stored");
  publish();
  await engine.clock.advance(2_000);
  expect([before.deliveries, engine.sink.attempts]).toEqual([[], []]);
  await operator.setRole(by("admin"), "stored", allow("subscribe"));
  await subscribe("http://receiver/", subscriptionId);
  const after = new RecordingPeer();
  await attach(after);
  await engine.clock.advance(2_000);
  expect(engine.sink.attempts.map(({ event }) => event.topic)).toEqual(["a"]);
  expect(after.deliveries.map(({ event }) => event.topic)).toEqual(["a"]);
});

/** Deletes the role and publishes an event. The broker suspends no subscription before the returned function is called. */
async function publishWithoutRole(): Promise<() => void> {
  const { store, running } = engine;
  const setSubscriptionState = store.setSubscriptionState.bind(store);
  const mayWrite = createDeferred<void>();
  store.setSubscriptionState = (...args) => mayWrite.promise.then(() => setSubscriptionState(...args));
  await running.operator.deleteRole(by("admin"), "stored");
  publish();
  await engine.clock.advance(2_000);
  return mayWrite.resolve;
}

it("an event that comes while the broker still suspends the callbacks of a deleted role waits until the role is back", async () => {
  const { operator } = engine.running;
  const urls = ["http://one/", "http://two/"];
  const ids = await Promise.all(urls.map((url) => subscribe(url)));
  const suspend = await publishWithoutRole();
  suspend();
  await engine.clock.advance(2_000);
  expect(engine.sink.attempts).toEqual([]);
  await operator.setRole(by("admin"), "stored", allow("subscribe"));
  for (const [index, url] of urls.entries()) await subscribe(url, ids[index]);
  await engine.clock.advance(2_000);
  expect(engine.sink.attempts.map(({ subscription: { url } }) => url).toSorted()).toEqual(urls);
});

it("an event whose delivery was withheld is delivered if the role is back before the broker has suspended its subscription", async () => {
  const { operator } = engine.running;
  const urls = ["http://one/", "http://two/"] as const;
  for (const url of urls) await subscribe(url);
  const suspend = await publishWithoutRole();
  await operator.setRole(by("admin"), "stored", allow("subscribe"));
  suspend();
  await engine.clock.advance(5_000);
  expect(engine.sink.attempts.map(({ subscription: { url } }) => url)).toEqual([urls[1]]);
});
