import { expect, it } from "vitest";
import type { NodeId } from "../../domain/node.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { LiveMembership } from "./live-membership.ts";

const nodeId = "00000000-0000-4000-8000-000000000001" as NodeId; // Any UUID.

function setUp() {
  const clock = new VirtualClock();
  const membership = new LiveMembership(nodeId, { clock, membershipMs: 6_000, sentAt: clock.monotonic() });
  return { clock, membership };
}

it("ends with a reason that names whole milliseconds", async () => {
  const { clock } = setUp();
  const membership = new LiveMembership(nodeId, { clock, membershipMs: 4_000, sentAt: clock.monotonic() });
  await clock.advance(4_000);
  expect(membership.ended.reason).toBe("not renewed for 3333 ms");
});

it("ends 5/6 of membershipMs after the last answered renewal was sent", async () => {
  const { clock, membership } = setUp();
  await clock.advance(2_000);
  const sentAt = clock.monotonic();
  await clock.advance(1_500);
  membership.renewed(sentAt);
  await clock.advance(3_499);
  expect(membership.ended.aborted).toBe(false);
  await clock.advance(1);
  expect(membership.ended.aborted).toBe(true);
});

it("a renewal answered out of order does not shorten the membership", async () => {
  const { clock, membership } = setUp();
  await clock.advance(2_000);
  membership.renewed(clock.monotonic());
  membership.renewed(clock.monotonic() - 2_000);
  await clock.advance(4_999);
  expect(membership.isLive()).toBe(true);
});

it("has ended after a pause of the process even before its timer runs, and a late answer does not revive it", () => {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, after: () => () => {}, soon: () => {} };
  const membership = new LiveMembership(nodeId, { clock, membershipMs: 6_000, sentAt: 0 });
  now = 5_000;
  membership.renewed(4_900);
  expect(membership.isLive()).toBe(false);
  expect(membership.ended.aborted).toBe(true);
});

it("end aborts its signal in the same turn", () => {
  const { membership } = setUp();
  let isReported = false;
  membership.ended.addEventListener("abort", () => void (isReported = true));
  membership.end("the test ends it");
  expect(isReported).toBe(true);
  expect(membership.isLive()).toBe(false);
});
