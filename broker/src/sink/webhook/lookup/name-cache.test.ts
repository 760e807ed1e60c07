import { expect, test } from "vitest";
import type { LookupEnd } from "./address-query.ts";
import { NameCache } from "./name-cache.ts";

const found = (ttlMs: number, ...addresses: string[]): LookupEnd => ({ kind: "found", addresses, ttlMs });
const absent: LookupEnd = { kind: "absent" };
const silent: LookupEnd = { kind: "silent", reason: "ETIMEOUT" };

function createCache() {
  const time = { now: 0 };
  return { cache: new NameCache({ monotonic: () => time.now }), time };
}

test.each([
  ["for the addresses' time to live", found(30_000, "10.0.0.1"), 30_000],
  ["at least a second", found(0, "10.0.0.1"), 1000],
  ["at most a minute", found(86_400_000, "10.0.0.1"), 60_000],
  ["for 5 s if there are no addresses", absent, 5000],
  ["for 5 s if nobody answers", silent, 5000],
])("caches a result %s", (_, end, heldMs) => {
  const { cache, time } = createCache();
  expect(cache.note("a", end)).toEqual(end);
  time.now = heldMs - 1;
  expect(cache.find("a")).toEqual(end);
  time.now = heldMs;
  expect(cache.find("a")).toBeUndefined();
});

test("without an answer, serves stale addresses for ten minutes, but not for a name that no longer exists", () => {
  const { cache, time } = createCache();
  cache.note("a", found(1000, "10.0.0.1"));
  time.now = 599_000;
  expect(cache.note("a", silent)).toMatchObject({ kind: "found", addresses: ["10.0.0.1"] });
  expect(cache.note("a", absent)).toEqual(absent);
  cache.note("a", found(1000, "10.0.0.2"));
  time.now += 600_000;
  expect(cache.note("a", silent)).toEqual(silent);
});

test("remembers that the last look-up of a name got no answer, even after its entry expired", () => {
  const { cache, time } = createCache();
  expect(cache.wasSilent("a")).toBe(false);
  cache.note("a", silent);
  time.now = 60_000;
  expect(cache.wasSilent("a")).toBe(true);
  cache.note("a", absent);
  expect(cache.wasSilent("a")).toBe(false);
  cache.note("a", found(1000, "10.0.0.1"));
  expect(cache.wasSilent("a")).toBe(false);
  expect(cache.note("a", silent).kind).toBe("found");
  expect(cache.wasSilent("a")).toBe(true);
});

test("above 10,000 names, forgets the least recently used one", () => {
  const { cache } = createCache();
  for (let index = 0; index < 10_000; index += 1) cache.note(`name ${index}`, absent);
  cache.find("name 0");
  cache.note("one more", absent);
  expect(cache.find("name 0")).toEqual(absent);
  expect(cache.find("name 1")).toBeUndefined();
  expect(cache.find("name 2")).toEqual(absent);
});
