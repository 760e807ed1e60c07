import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryApiKeys } from "../../../store/memory/memory-api-keys.ts";
import type { Caller } from "../../access/caller.ts";
import { formatKeyCredential } from "../../access/credential.ts";
import { testCaller } from "../../testing/as-caller.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";
import { secret, sha256 } from "../../testing/key-secret.ts";
import { rolesOfA } from "../../testing/roles-of-a.ts";

let cluster: TestCluster;
let keys: MemoryApiKeys;
let keyCount = 0;

beforeEach(async () => {
  keys = new MemoryApiKeys();
  cluster = await TestCluster.start(1, { keys: { apiKeys: keys, roles: rolesOfA, sha256 } });
});
afterEach(() => cluster.stopAll());

/** Adds an API key of the principal. The node knows the key when this resolves. */
async function addKey(role: string, expiresAt?: number): Promise<{ readonly id: string; readonly caller: Caller }> {
  const id = String((keyCount += 1)).padStart(16, "0");
  const times = { createdAt: 0, expiresAt, revokedAt: undefined };
  const key = { id, digest: sha256(secret), principal: "one", tenant: undefined, roles: [role], ...times };
  expect(await keys.insertApiKey(key, 100)).toBe(true);
  await cluster.clock.advance(1_000);
  const principal = await cluster.node(0).calls.authenticate(formatKeyCredential({ id, secret }), testCaller);
  return { id, caller: { ...testCaller, principal } };
}

async function tail(caller: Caller, topic: string): Promise<RecordingPeer> {
  const peer = new RecordingPeer();
  const call = { groupId: undefined, filters: [topic], after: undefined, lastEventId: undefined };
  await cluster.run(cluster.node(0).calls.tail(caller, { ...call, onConnected: () => {} }, peer));
  return peer;
}

it("refuses a tail if the rights do not cover its whole filter", async () => {
  const { caller } = await addKey("all of a");
  await expect(tail(caller, "#")).rejects.toMatchObject({ code: 100702 });
  await expect(tail(testCaller, "a/#")).rejects.toMatchObject({ code: 100701 });
});

it("a tail ends within a second when its API key is revoked", async () => {
  const { id, caller } = await addKey("all of a");
  const peer = await tail(caller, "a/#");
  await keys.revokeApiKey(id, cluster.clock.now());
  await cluster.clock.advance(1_000);
  expect(peer.endedBecause).toBe("refused");
});

it("a tail ends within a second when its API key expires", async () => {
  const { caller } = await addKey("all of a", cluster.clock.now() + 10_000);
  const peer = await tail(caller, "a/#");
  await cluster.clock.advance(8_000);
  expect(peer.endedBecause).toBeUndefined();
  await cluster.clock.advance(2_000);
  expect(peer.endedBecause).toBe("refused");
});

it("a tail ends within a second when its principal loses the right to one of its topics, and other tails continue", async () => {
  const { caller } = await addKey("all of a");
  const [all, open] = [await tail(caller, "a/#"), await tail(caller, "a/open")];
  await addKey("not secret");
  expect([all.endedBecause, open.endedBecause]).toEqual(["refused", undefined]);
});
