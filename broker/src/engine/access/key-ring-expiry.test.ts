import { expect, it } from "vitest";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { KeyRing } from "./key-ring.ts";

const secondMs = 1_000;

it("reports the owner of a revoked key once, and not again at the time when the key would have expired", async () => {
  const clock = new VirtualClock();
  const apiKeys = new MemoryApiKeys();
  const expiresAt = clock.now() + 3_600 * secondMs;
  const own = { tenant: undefined, roles: [], createdAt: 0, expiresAt, revokedAt: undefined };
  for (const id of ["a", "b"]) await apiKeys.insertApiKey({ id: id.repeat(16), digest: id, principal: id, ...own }, 10);
  const reported: string[] = [];
  const ring = new KeyRing({
    apiKeys,
    roles: new Map(),
    sha256: (text) => text,
    clock,
    time: new ForwardClock(clock),
    logger: silentLogger,
    onChecked: (changed) => void reported.push(...changed),
  });
  await ring.start();
  reported.length = 0;
  await apiKeys.revokeApiKey("a".repeat(16), clock.now());
  await clock.advance(secondMs);
  expect(reported).toEqual(["a"]);
  await clock.advance(3_600 * secondMs);
  expect(reported.filter((owner) => owner === "a")).toHaveLength(1);
  expect(reported).toContain("b");
  await ring.stop();
});
