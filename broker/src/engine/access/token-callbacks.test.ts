import { afterEach, expect, it } from "vitest";
import type { AccessRule } from "../../domain/access-rule.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Attachment, AttachRequest, Broker } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { keysReadEveryMs } from "./key-ring.ts";
import type { TokenMapping } from "./token-claims.ts";
import { secret } from "../testing/key-secret.ts";

const issuer = "https://issuer.example";
const allows = (...actions: AccessRule["actions"]): readonly AccessRule[] => [
  { effect: "allow", actions, filter: "${tenant}/#" },
];
const roles = new Map([
  ["member", allows("open", "publish", "subscribe", "unsubscribe", "read")],
  ["lasting", allows("subscribe", "publish")],
  ["wide", [{ effect: "allow", actions: ["subscribe"] } as const]],
  ["reader", [{ effect: "allow", actions: ["subscribe"], filter: "${tenant}/b" } as const]],
]);
const plain: TokenMapping = {
  principalClaim: "sub",
  tenant: "acme",
  tenantClaim: undefined,
  rolesClaim: "roles",
  roles: new Map(),
  defaultRoles: ["member"],
  lastingRoles: [],
  aclClaim: undefined,
};
const tokenMs = 60_000;
const keyId = "1".repeat(16);

let keys: MemoryApiKeys;
let engine: TestEngine;
let calls: Broker;
afterEach(() => engine.stop());

/** Starts a broker that accepts tokens of the form `name.role.x`, which expire after {@link tokenMs}. */
async function start(mapping: Partial<TokenMapping>): Promise<void> {
  keys = new MemoryApiKeys();
  const { monotonic } = new VirtualClock();
  const now = (): number => engine?.clock.now() ?? monotonic();
  const verifier = {
    start: async () => {},
    stop: async () => {},
    trusts: () => true,
    findWarning: () => undefined,
    verify: async (token: string) => {
      const [sub, role] = token.split(".");
      const claims = { sub, roles: role };
      return { status: "verified", issuer, signer: "key", claims, expiresAt: now() + tokenMs } as const;
    },
  };
  const tokens = { verifier, mappings: new Map([[issuer, { ...plain, ...mapping }]]) };
  engine = await TestEngine.start({ keys: { apiKeys: keys, roles, sha256: (text) => text, tokens } });
  calls = engine.running.calls;
}

async function by(name: string, role = "none"): Promise<Caller> {
  return { ...testCaller, principal: await calls.authenticate(`${name}.${role}.x`, testCaller) };
}

const subscribe = (caller: Caller, topic = "#") => {
  const rest = { groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
  return calls.subscribe(caller, { ...rest, topic, url: "http://hook/", subscriptionId: undefined });
};

async function publish(caller: Caller, topic: string): Promise<void> {
  const call = { topic, groupId: undefined, content: new TextEncoder().encode(topic), extensions: [] };
  const settled = new Promise((resolve) => calls.submit(caller, call, resolve));
  await engine.clock.advance(1_000);
  expect(await settled).toMatchObject({ status: "SUCCESS" });
}

const received = (): readonly string[] => engine.sink.attempts.map(({ event }) => event.topic);

it("refuses a callback subscription by a token whose issuer has no lasting roles, and says what to do", async () => {
  await start({});
  const shop = await by("shop");
  await expect(subscribe(shop)).rejects.toThrow(
    /callbacks outlast a token; create a key .* or give its issuer lastingRoles/,
  );
  expect(await engine.store.listSubscriptions()).toEqual([]);
});

it("refuses a callback subscription by a token unless the lasting roles allow the whole filter", async () => {
  await start({ lastingRoles: ["reader"] });
  const shop = await by("shop");
  await expect(subscribe(shop)).rejects.toThrow("not allowed");
  await calls.open(shop, { topic: "b", groupId: undefined });
  await subscribe(shop, "b");
});

it("says that a filter is shared before it asks for lasting roles, which would not help", async () => {
  await start({ tenant: undefined, defaultRoles: ["wide"] });
  await expect(subscribe(await by("shop"), "$share/s/#")).rejects.toMatchObject({ code: 100_109 });
});

it("with lasting roles, callbacks continue after the token has expired", async () => {
  await start({ lastingRoles: ["lasting"] });
  const shop = await by("shop");
  await calls.open(shop, { topic: "a", groupId: undefined });
  await subscribe(shop);
  await engine.clock.advance(2 * tokenMs);
  await expect(calls.exist(shop, { topic: "a", groupId: undefined })).rejects.toThrow("the token is expired");
  await publish(await by("other"), "a");
  expect(received()).toEqual(["a"]);
});

it("a principal that had a key gets no lasting roles, so its callbacks end when its last key is revoked", async () => {
  await start({ lastingRoles: ["lasting"] });
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const key = { id: keyId, digest: secret, principal: "shop", tenant: "acme", roles: ["member"], ...times };
  expect(await keys.insertApiKey(key, 10)).toBe(true);
  await engine.clock.advance(2 * keysReadEveryMs);
  const principal = await calls.authenticate(formatKeyCredential({ id: keyId, secret }), testCaller);
  const shop = { ...testCaller, principal };
  await calls.open(shop, { topic: "a", groupId: undefined });
  await subscribe(await by("shop"));
  await keys.revokeApiKey(keyId, engine.clock.now());
  await engine.clock.advance(2 * keysReadEveryMs + 1_000);
  await publish(await by("other"), "a");
  expect(received()).toEqual([]);
});

const attachWithWill = async (name: string, { delayMs, expiryMs }: { delayMs: number; expiryMs: number }) => {
  await calls.open(await by("observer"), { topic: "gone", groupId: undefined });
  const call = { topic: "gone", groupId: undefined, content: new TextEncoder().encode("gone"), extensions: [] };
  const request: AttachRequest = {
    groupId: undefined,
    protocol: "MQTT",
    key: "c",
    isClean: false,
    windowMax: 1,
    will: { call, delayMs, expiresAfterMs: undefined, opensTopic: false },
    expiryMs,
    onConnected: () => {},
  };
  const attaching = calls.attach(await by(name), request, new RecordingPeer());
  await engine.clock.settle();
  return attaching;
};

const willsPublished = async (): Promise<number> =>
  (await calls.state(await by("late"), { topic: "gone", groupId: undefined })).sequence;

it.each([
  ["lasting", 1],
  ["reader", 0],
])(
  "after the token of a session has expired, the lasting role %s lets the broker publish %i of its wills",
  async (role, count) => {
    await start({ lastingRoles: [role] });
    const attachment = await attachWithWill("device", { delayMs: 2 * tokenMs, expiryMs: 10 * tokenMs });
    attachment.detach({ expiryMs: 10 * tokenMs, isRegular: false });
    await engine.clock.advance(3 * tokenMs);
    expect(await willsPublished()).toBe(count);
  },
);

it.each([
  ["lasting", 1],
  ["reader", 0],
])(
  "if a token expires on the connection of a session that is not stored, the role %s lets the broker publish %i of its wills",
  async (role, count) => {
    await start({ lastingRoles: [role] });
    const attachment = await attachWithWill("device", { delayMs: 0, expiryMs: 0 });
    await engine.clock.advance(2 * tokenMs);
    attachment.detach({ expiryMs: 0, isRegular: false });
    await engine.clock.advance(1_000);
    expect(await willsPublished()).toBe(count);
  },
);

it("publishes no will of a principal that has neither keys nor lasting roles, even if its token is valid", async () => {
  await start({});
  const attachment = await attachWithWill("device", { delayMs: 0, expiryMs: 0 });
  attachment.detach({ expiryMs: 0, isRegular: false });
  await engine.clock.advance(1_000);
  expect(await willsPublished()).toBe(0);
});

it.each([false, true])(
  "a session resumed with a token of fewer rights gets only events that this token allows; its principal also has a key: %j",
  async (hasKey) => {
    const named = ["member", "reader"].map((role) => [role, [role]] as const);
    await start({ defaultRoles: [], roles: new Map(named) });
    const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
    const key = { id: keyId, digest: secret, principal: "shop", tenant: "acme", roles: ["member"], ...times };
    if (hasKey) await keys.insertApiKey(key, 10);
    await engine.clock.advance(2 * keysReadEveryMs);
    const publisher = await by("publisher", "member");
    for (const topic of ["b", "c"]) await calls.open(publisher, { topic, groupId: undefined });
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 9 } as const;
    const rest = { will: undefined, expiryMs: tokenMs, onConnected: () => {} };
    const attach = async (role: string, peer: RecordingPeer): Promise<Attachment> => {
      const attaching = calls.attach(await by("shop", role), { ...request, ...rest }, peer);
      await engine.clock.settle();
      return attaching;
    };
    const attachment = await attach("member", new RecordingPeer());
    const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    expect(await attachment.subscribe([{ ...how, filter: parseTopicFilter("#") }])).toEqual([true]);
    const peer = new RecordingPeer();
    await attach("reader", peer);
    for (const topic of ["c", "b"]) await publish(publisher, topic);
    expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["b"]);
  },
);
