import { expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { formatKeyCredential } from "./credential.ts";
import { KeyRing } from "./key-ring.ts";
import { secret } from "../testing/key-secret.ts";

const secondMs = 1_000;

/** Starts a ring with keys of the principals `a` and `b`, which expire in an hour, and `further` others. Returns also the reported owners and the reads. */
async function startRing(further = 0) {
  const clock = new VirtualClock();
  const apiKeys = new MemoryApiKeys();
  const expiresAt = clock.now() + 3_600 * secondMs;
  const own = { tenant: undefined, roles: [], createdAt: 0, expiresAt, revokedAt: undefined };
  for (const id of ["a", "b"]) await apiKeys.insertApiKey({ id: id.repeat(16), digest: id, principal: id, ...own }, 10);
  for (let number = 0; number < further; number += 1)
    await apiKeys.insertApiKey({ id: `${number}`, digest: "", principal: "c", ...own }, 10_000);
  const reported: string[] = [];
  const reads: number[] = [];
  let answering = Promise.resolve();
  const ring = new KeyRing({
    apiKeys: {
      start: () => apiKeys.start(),
      stop: () => apiKeys.stop(),
      listApiKeys: (after) => {
        reads.push(after);
        return answering.then(() => apiKeys.listApiKeys(after));
      },
      readRoles: (after) => apiKeys.readRoles(after),
    },
    roles: new Map(),
    sha256: (text) => text,
    clock,
    time: new ForwardClock(clock),
    logger: silentLogger,
    onChecked: (changed) => void reported.push(...changed),
  });
  await ring.start();
  reported.length = 0;
  return { clock, apiKeys, ring, reported, reads, answerAfter: (end: Promise<void>) => void (answering = end) };
}

it("reports the owner of a revoked key once, and not again at the time when the key would have expired", async () => {
  const { clock, apiKeys, ring, reported } = await startRing();
  await apiKeys.revokeApiKey("a".repeat(16), clock.now());
  await clock.advance(secondMs);
  expect(reported).toEqual(["a"]);
  await clock.advance(3_600 * secondMs);
  expect(reported.filter((owner) => owner === "a")).toHaveLength(1);
  expect(reported).toContain("b");
  await ring.stop();
});

it("reports the owners of keys that expire within a second, even while a read of the keys hangs", async () => {
  const { clock, ring, reported, answerAfter } = await startRing();
  const { promise, resolve } = createDeferred<void>();
  await clock.advance(3_590 * secondMs);
  answerAfter(promise);
  await clock.advance(11 * secondMs);
  const found = [...reported];
  resolve();
  await ring.stop();
  expect(found).toEqual(["a", "b"]);
});

it("reads thousands of keys once at its start, and then only those that change", async () => {
  const { clock, ring, reads } = await startRing(3_000);
  await clock.advance(10 * secondMs);
  await ring.stop();
  expect(reads.length).toBeGreaterThan(10);
  expect(reads.filter((after) => after === 0)).toHaveLength(1);
});

it("refuses a connection's key for ever once it was revoked, even if its row is pruned and its principal has another key", async () => {
  const { clock, apiKeys, ring } = await startRing();
  const id = "d".repeat(16);
  const own = {
    principal: "d",
    tenant: undefined,
    roles: [],
    createdAt: 0,
    expiresAt: undefined,
    revokedAt: undefined,
  };
  for (const key of [id, "another"]) await apiKeys.insertApiKey({ id: key, digest: secret, ...own }, 10);
  await clock.advance(secondMs);
  const principal = ring.authenticate(formatKeyCredential({ id, secret }));
  expect(ring.findFault(principal)).toBeUndefined();
  await apiKeys.revokeApiKey(id, clock.now());
  await clock.advance(secondMs);
  expect(ring.findFault(principal)).toBe("the key is revoked");
  await apiKeys.pruneApiKeys(clock.now(), { keepsOwners: false });
  // Enough keys to make the ring look for pruned ones.
  for (let number = 0; number < 1_000; number += 1)
    await apiKeys.insertApiKey({ id: `${number}`, digest: "", ...own }, 2_000);
  await clock.advance(2 * secondMs);
  expect(ring.authenticate(formatKeyCredential({ id, secret }))).toMatchObject({ kind: "rejected" });
  expect(ring.findFault(principal)).toBe("the key has ended");
  await ring.stop();
});
