import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Caller } from "../access/caller.ts";
import type { Attachment } from "../broker.ts";
import { formatKeyCredential } from "../access/credential.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withSessionCalls } from "../testing/with-session-calls.ts";
import { secret, sha256 } from "../testing/key-secret.ts";
import { allOfA, rolesOfA } from "../testing/roles-of-a.ts";

const roles = new Map([...rolesOfA, ["elsewhere", [{ ...allOfA, groupId: "3" }]]]);
const firstId = "1".repeat(16);

let engine: TestEngine;
let keys: MemoryApiKeys;
let memory: ReturnType<typeof createMemoryStore>;
/** Number of checks for returned events of shares: the node makes them only while it has members of shares. */
let looks: number;
/** Claims of sessions wait for this. */
let claims: Deferred<void>;
/** Writes of sessions wait for this; undefined if they need not wait. */
let writes: Deferred<void> | undefined;

const addKey = (id: string, role: string) => {
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const key = { id, digest: sha256(secret), principal: "one", tenant: undefined, roles: [role], ...times };
  return keys.insertApiKey(key, 100);
};

beforeEach(async () => {
  [claims, writes] = [createDeferred(), undefined];
  keys = new MemoryApiKeys();
  memory = createMemoryStore();
  const store = withSessionCalls(memory, {
    claimSession: async (claim) => {
      await claims.promise;
      return memory.sessions.claimSession(claim);
    },
    saveSessions: async (...call) => {
      await writes?.promise;
      return memory.sessions.saveSessions(...call);
    },
    findReturning: async (ids) => {
      looks += 1;
      return memory.shares.findReturning(ids);
    },
  });
  await addKey(firstId, "all of a");
  engine = await TestEngine.start({ store, keys: { apiKeys: keys, roles, sha256 } });
});
afterEach(() => engine.stop());

function caller(id = firstId): Caller {
  const principal = engine.running.calls.authenticate(formatKeyCredential({ id, secret }), testCaller);
  if (principal instanceof Promise) throw new Error("an API key must authenticate synchronously");
  return { ...testCaller, principal };
}

/** Changes rights while the claim of `call` waits. Returns the code of the call's error. */
async function codeOf(call: Promise<unknown>, change: () => Promise<unknown>): Promise<unknown> {
  const code = call.then(
    () => undefined,
    (error: unknown) => (error as { code?: number }).code,
  );
  await engine.clock.settle();
  await change();
  await engine.clock.advance(1_000);
  claims.resolve();
  await engine.clock.advance(1_000);
  return code;
}

const session = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 1 } as const;
const rest = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
const tail = { groupId: undefined, filters: ["a/#"], after: undefined, lastEventId: undefined, onConnected: () => {} };
const revoke = () => keys.revokeApiKey(firstId, engine.clock.now());

it("refuses an attach if its API key is revoked while the node claims the session, and leaves the session detached", async () => {
  const peer = new RecordingPeer();
  const attached = engine.running.calls.attach(caller(), { ...session, ...rest }, peer);
  expect(await codeOf(attached, revoke)).toBe(100_701);
  await engine.clock.advance(5_000);
  const rows = await memory.sessions.listSessions({ after: undefined, limit: 9 });
  expect(rows.map((row) => row.session.detachedAt)).toEqual([expect.any(Number)]);
});

/** Attaches a principal that has no rights in the groups 1 and 2. Returns the code of the refusal; undefined if the attach is accepted. */
async function attachElsewhere(groupId: string | undefined): Promise<unknown> {
  const id = "2".repeat(16);
  await addKey(id, "elsewhere");
  await keys.revokeApiKey(firstId, engine.clock.now());
  await engine.clock.advance(1_000);
  const attached = engine.running.calls.attach(caller(id), { ...session, ...rest, groupId }, new RecordingPeer());
  return codeOf(attached, async () => {});
}

it.each(["1", "2"])(
  "refuses an attach to group %s by a principal without rights in it, whether or not it exists",
  async (groupId) => {
    expect(await attachElsewhere(groupId)).toBe(100_702);
  },
);

it.each([undefined, "", " "])(
  "accepts an attach that names no group (%j) by a principal without rights in the default one",
  async (groupId) => {
    expect(await attachElsewhere(groupId)).toBeUndefined();
  },
);

it("keeps no member of a share for an attach that it refuses", async () => {
  claims.resolve();
  const attaching = engine.running.calls.attach(caller(), { ...session, ...rest }, new RecordingPeer());
  const [attachment] = await Promise.all([attaching, engine.clock.settle()]);
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const subscribed = await attachment.subscribe([{ ...how, filter: parseTopicFilter("$share/s/a/#") }]);
  expect(subscribed).toEqual([true]);
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(5_000);
  claims = createDeferred();
  const again = engine.running.calls.attach(caller(), { ...session, ...rest }, new RecordingPeer());
  expect(await codeOf(again, revoke)).toBe(100_701);
  looks = 0;
  await engine.clock.advance(5_000);
  expect(looks).toBe(0);
});

it("if a refused attach has removed a session, another member of its share gets its events at once", async () => {
  claims.resolve();
  const other = "2".repeat(16);
  await addKey(other, "all of a");
  await engine.clock.advance(1_000);
  const { calls } = engine.running;
  await calls.open(caller(), { topic: "a/x", groupId: undefined });
  const [first, second] = [await attach(firstId), await attach(other, { key: "other" })];
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const filters = [{ ...how, filter: parseTopicFilter("$share/s/a/#") }];
  await first.attachment.subscribe(filters);
  const call = { topic: "a/x", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  calls.submit(caller(), call, () => {});
  await engine.clock.advance(1_000);
  await second.attachment.subscribe(filters);
  expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], []]);
  claims = createDeferred();
  const again = calls.attach(caller(), { ...session, ...rest, isClean: true, expiryMs: 0 }, new RecordingPeer());
  expect(await codeOf(again, revoke)).toBe(100_701);
  expect(second.peer.sequences).toEqual([1]);
});

it("refuses a tail whose API key is revoked while it begins", async () => {
  const opened = engine.running.calls.tail(caller(), tail, new RecordingPeer());
  expect(await codeOf(opened, revoke)).toBe(100_701);
});

it("refuses a tail whose principal loses the right to one of its topics while it begins", async () => {
  const opened = engine.running.calls.tail(caller(), tail, new RecordingPeer());
  expect(await codeOf(opened, () => addKey("2".repeat(16), "not secret"))).toBe(100_702);
});

it("limits the wills of one principal or tenant to half of the memory for wills, so that others have room", async () => {
  await engine.stop();
  for (const [id, tenant] of [
    ["2", "acme"],
    ["3", "acme"],
    ["4", "globex"],
  ] as const) {
    const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
    const key = { id: id.repeat(16), digest: sha256(secret), principal: `p${id}`, tenant, roles: ["all"], ...times };
    await keys.insertApiKey(key, 100);
  }
  const all = new Map([...roles, ["all", [{ effect: "allow", actions: ["publish"] }]]] as const);
  engine = await TestEngine.start({ limits: { willBytesMax: 4_200 }, keys: { apiKeys: keys, roles: all, sha256 } });
  const attach = (id: string, key: string) => {
    const call = { topic: "a/will", groupId: undefined, content: new Uint8Array(1_000), extensions: [] };
    const will = { call, delayMs: 0, expiresAfterMs: undefined, opensTopic: false };
    const request = { ...session, ...rest, expiryMs: 0, key, will };
    return engine.running.calls.attach(caller(id.repeat(16)), request, new RecordingPeer());
  };
  const attached = [await attach("2", "a"), await attach("3", "b")];
  await expect(attach("3", "c")).rejects.toMatchObject({ code: 200_301, message: expect.stringContaining("acme") });
  await attach("4", "a");
  for (const { end } of attached) await end();
  await attach("3", "c");
  for (const key of ["a", "b"]) await attach("1", key);
  await expect(attach("4", "b")).rejects.toMatchObject({ code: 200_300 });
});

interface Attached {
  readonly peer: RecordingPeer;
  readonly attachment: Attachment;
}

async function attach(id: string, { key = "c", hasRoom = true } = {}): Promise<Attached> {
  const peer = new RecordingPeer();
  peer.hasRoom = hasRoom;
  const attaching = engine.running.calls.attach(caller(id), { ...session, ...rest, key }, peer);
  const [attachment] = await Promise.all([attaching, engine.clock.settle()]);
  return { peer, attachment };
}

/** Publishes an event with QoS 2 to a client that subscribes before or, for a retained event, after it. The client then disconnects without an answer. */
async function leaveEvent({ isRetained }: { readonly isRetained: boolean }): Promise<void> {
  const { calls } = engine.running;
  await calls.open(caller(), { topic: "a/secret", groupId: undefined });
  const extensions = [["svc-qos", "2"] as const, ...(isRetained ? [["svc-retain", "true"] as const] : [])];
  const call = { topic: "a/secret", groupId: undefined, content: new Uint8Array([1]), extensions };
  const { peer, attachment } = await attach(firstId);
  const how = { qos: 2, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const subscribe = () => attachment.subscribe([{ ...how, filter: parseTopicFilter("a/#"), retained: "always" }]);
  const steps = [subscribe, async () => calls.submit(caller(), call, () => {})];
  for (const step of isRetained ? steps.toReversed() : steps) {
    await Promise.all([step(), engine.clock.advance(1_000)]);
  }
  expect(peer.ticketOf(1)).toBe(1);
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(100);
}

it("asks a client to release an event of QoS 2 that it may have, but may no longer receive", async () => {
  claims.resolve();
  await leaveEvent({ isRetained: false });
  await revoke();
  await addKey("2".repeat(16), "not secret");
  await engine.clock.advance(1_000);
  writes = createDeferred();
  const second = await attach("2".repeat(16));
  await engine.clock.advance(1_000);
  expect(second.attachment.isPresent).toBe(true);
  expect(second.peer.released, "before the store has it").toEqual([]);
  writes.resolve();
  await engine.clock.advance(1_000);
  expect([second.peer.sequences, second.peer.released]).toEqual([[], [1]]);
});

it.each([true, false])(
  "asks a client to release an event of QoS 2 if the client loses the right to the event before the repeat (retained: %s)",
  async (isRetained) => {
    claims.resolve();
    await leaveEvent({ isRetained });
    const { peer, attachment } = await attach(firstId, { hasRoom: false });
    await engine.clock.advance(1_000);
    await addKey("2".repeat(16), "not secret");
    await engine.clock.advance(1_000);
    peer.hasRoom = true;
    attachment.session.wake();
    await engine.clock.advance(1_000);
    expect([peer.sequences, peer.released]).toEqual([[], [1]]);
  },
);
