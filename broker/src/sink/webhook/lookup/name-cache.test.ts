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
  ["as long as they live", found(30_000, "10.0.0.1"), 30_000],
  ["at least a second", found(0, "10.0.0.1"), 1000],
  ["at most a minute", found(86_400_000, "10.0.0.1"), 60_000],
  ["for 5 s when there are none", absent, 5000],
  ["for 5 s when nobody answers", silent, 5000],
])("addresses are remembered %s", (_, end, heldMs) => {
  const { cache, time } = createCache();
  expect(cache.note("a", end)).toEqual(end);
  time.now = heldMs - 1;
  expect(cache.find("a")).toEqual(end);
  time.now = heldMs;
  expect(cache.find("a")).toBeUndefined();
});

test("addresses from before stand in for an answer that does not come, for ten minutes, but not for a name that is gone", () => {
  const { cache, time } = createCache();
  cache.note("a", found(1000, "10.0.0.1"));
  time.now = 599_000;
  expect(cache.note("a", silent)).toMatchObject({ kind: "found", addresses: ["10.0.0.1"] });
  expect(cache.note("a", absent)).toEqual(absent);
  cache.note("a", found(1000, "10.0.0.2"));
  time.now += 600_000;
  expect(cache.note("a", silent)).toEqual(silent);
});

test("a name whose last look-up got no answer is known as such, also while it is not remembered", () => {
  const { cache, time } = createCache();
  expect(cache.wasSilent("a")).toBe(false);
  cache.note("a", silent);
  time.now = 60_000;
  expect(cache.wasSilent("a")).toBe(true);
  cache.note("a", absent);
  expect(cache.wasSilent("a")).toBe(false);
});

test("of 10,000 names and one the one that was used longest ago is forgotten", () => {
  const { cache } = createCache();
  for (let index = 0; index < 10_000; index += 1) cache.note(`name ${index}`, absent);
  cache.find("name 0");
  cache.note("one more", absent);
  expect(cache.find("name 0")).toEqual(absent);
  expect(cache.find("name 1")).toBeUndefined();
  expect(cache.find("name 2")).toEqual(absent);
});
