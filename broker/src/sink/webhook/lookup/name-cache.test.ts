import { expect, test } from "vitest";
import type { LookupResult } from "./address-query.ts";
import { NameCache } from "./name-cache.ts";

const found = (ttlMs: number, ...addresses: string[]): LookupResult => ({ kind: "found", addresses, ttlMs });
const absent: LookupResult = { kind: "absent" };
const failed: LookupResult = { kind: "failed", reason: "ETIMEOUT" };

function createCache() {
  const time = { now: 0 };
  return { cache: new NameCache({ monotonic: () => time.now }), time };
}

test.each([
  ["for the addresses' time to live", found(30_000, "10.0.0.1"), 30_000],
  ["at least a second", found(0, "10.0.0.1"), 1000],
  ["at most a minute", found(86_400_000, "10.0.0.1"), 60_000],
  ["for 5 s if there are no addresses", absent, 5000],
  ["for 5 s if the look-up failed", failed, 5000],
])("caches a result %s", (_, result, heldMs) => {
  const { cache, time } = createCache();
  expect(cache.record("a", result)).toEqual(result);
  time.now = heldMs - 1;
  expect(cache.find("a")).toEqual(result);
  time.now = heldMs;
  expect(cache.find("a")).toBeUndefined();
});

test("after a failed look-up, serves stale addresses for ten minutes, but not for a name that no longer exists", () => {
  const { cache, time } = createCache();
  cache.record("a", found(1000, "10.0.0.1"));
  time.now = 599_000;
  expect(cache.record("a", failed)).toMatchObject({ kind: "found", addresses: ["10.0.0.1"] });
  expect(cache.record("a", absent)).toEqual(absent);
  cache.record("a", found(1000, "10.0.0.2"));
  time.now += 600_000;
  expect(cache.record("a", failed)).toEqual(failed);
});

test("remembers that the last look-up of a name failed, even after its entry expired", () => {
  const { cache, time } = createCache();
  expect(cache.hasFailed("a")).toBe(false);
  cache.record("a", failed);
  time.now = 60_000;
  expect(cache.hasFailed("a")).toBe(true);
  cache.record("a", absent);
  expect(cache.hasFailed("a")).toBe(false);
  cache.record("a", found(1000, "10.0.0.1"));
  expect(cache.hasFailed("a")).toBe(false);
  expect(cache.record("a", failed).kind).toBe("found");
  expect(cache.hasFailed("a")).toBe(true);
});

test("above 10,000 names, forgets the least recently used one", () => {
  const { cache } = createCache();
  for (let index = 0; index < 10_000; index += 1) cache.record(`name ${index}`, absent);
  cache.find("name 0");
  cache.record("one more", absent);
  expect(cache.find("name 0")).toEqual(absent);
  expect(cache.find("name 1")).toBeUndefined();
  expect(cache.find("name 2")).toEqual(absent);
});
