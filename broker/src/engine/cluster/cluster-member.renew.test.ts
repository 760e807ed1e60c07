import { expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { defaultEngineLimits as limits } from "../limits.ts";
import { ClusterMember } from "./cluster-member.ts";

it("retries only the periodic renewals: each call of renew asks the coordinator once, and resolves even if that fails", async () => {
  const clock = new VirtualClock();
  const { coordinator } = createMemoryCluster({ clock });
  const randomness = { fraction: () => 0.5, uuid: () => "a", bytes: (count: number) => new Uint8Array(count) };
  const own = { address: "a:1", onMembershipEnded: () => undefined, readyGroups: () => [], writeRest: async () => {} };
  const member = new ClusterMember({ ...own, coordinator, clock, randomness, limits, logger: silentLogger });
  onTestFinished(() => member.stop(new AbortController().signal));
  member.start();
  await clock.settle();
  let [asked, resolved] = [0, 0];
  coordinator.renew = async () => {
    asked += 1;
    throw new Error("no connection");
  };
  for (let group = 0; group < 32; group += 1) void member.renew().then(() => (resolved += 1));
  await clock.advance(limits.membershipMs / 4);
  expect([asked, resolved]).toEqual([32, 32]);
  await clock.advance(limits.membershipMs / 4);
  expect(asked).toBe(35);
});
