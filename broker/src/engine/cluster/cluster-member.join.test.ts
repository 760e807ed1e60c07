import { expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { defaultEngineLimits as limits } from "../limits.ts";
import { ClusterMember } from "./cluster-member.ts";

it.each([
  ["fail", () => Promise.reject(new Error("no connection"))],
  ["hang", () => new Promise<void>(() => {})],
])("joins within a second although its last writes %s", async (_, writeRest) => {
  const clock = new VirtualClock();
  const { coordinator } = createMemoryCluster({ clock });
  const randomness = { fraction: () => 0.5, uuid: () => "a", bytes: (count: number) => new Uint8Array(count) };
  const own = { address: "a:1", onMembershipEnded: () => undefined, readyGroups: () => [], writeRest };
  const member = new ClusterMember({ ...own, coordinator, clock, randomness, limits, logger: silentLogger });
  onTestFinished(() => member.stop(new AbortController().signal));
  member.start();
  await clock.advance(1_000);
  expect(member.failure).toBeUndefined();
});
