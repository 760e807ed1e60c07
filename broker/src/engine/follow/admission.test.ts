import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { createMemoryCluster } from "../../store/memory/memory-cluster.ts";
import { Group } from "../group.ts";
import { defaultEngineLimits } from "../limits.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Admission } from "./admission.ts";

const never = new AbortController().signal;
const clock = new VirtualClock();
const record = { chainId: 1, genesisHash: `0x${"00".repeat(32)}`, registryAddress: `0x${"00".repeat(20)}` } as const;

/** Two nodes that both want to start the ledger of a group whose registry nobody knows. */
async function begin() {
  const { store, coordinator } = createMemoryCluster({ clock });
  const chain = new MemoryChain({ clock });
  const admit = async (name: string) => {
    const nodeId = name as NodeId; // Any text is one here.
    await coordinator.join({ id: nodeId, address: name }, defaultEngineLimits.membershipMs);
    const life = { isLive: true };
    const membership = { nodeId, isLive: () => life.isLive, ended: never };
    const ledger = createMemoryLedger({ groupId: defaultGroupId, chain });
    const group = new Group({ ledger, store, clock, metrics: noMetrics, limits: defaultEngineLimits, isShared: true });
    const member = { membership: async () => membership, onHint: () => () => {} };
    const admission = new Admission({ group, coordinator, member, records: store, clock, logger: silentLogger });
    return { admission, life };
  };
  return { first: await admit("first:1"), second: await admit("second:1"), store };
}

it("one node may deploy the group's registry, for as long as its membership lasts; the other waits", async () => {
  const { first, second } = await begin();
  const { mayDeploy } = await first.admission.toLedger(never);
  await expect(second.admission.toLedger(never)).rejects.toThrow(/another node is the first on its chain/);
  expect(mayDeploy?.()).toBe(true);
  first.life.isLive = false;
  expect(mayDeploy?.()).toBe(false);
});

it("a node that could not deploy it lets the other try", async () => {
  const { first, second } = await begin();
  await first.admission.toLedger(never);
  await first.admission.giveWay();
  expect((await second.admission.toLedger(never)).mayDeploy?.()).toBe(true);
});

it("where the registry is known, everybody may start and nobody may deploy one", async () => {
  const { first, second, store } = await begin();
  await store.saveGroupRecord(defaultGroupId, record);
  for (const { admission } of [first, second]) expect((await admission.toLedger(never)).mayDeploy?.()).toBe(false);
});
