import { Signer } from "@stele/eth/node";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { GroupRecord } from "../../../ports/group-records.ts";
import type { EvmLedger } from "../evm-ledger.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { type Anvil, startAnvil } from "../testing/anvil.ts";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { until } from "../testing/writer-world.ts";
import type { GroupMemory } from "./settle-registry.ts";

const keys = { first: "first node", second: "second node" } as const;
let anvil: Anvil;
let ledgers: EvmLedger[] = [];
/** The memory that the nodes share. */
let memory: GroupMemory & { record: GroupRecord | undefined };

beforeEach(async () => {
  anvil = await startAnvil();
  memory = {
    record: undefined,
    find: async () => memory.record,
    save: async (record) => (memory.record ??= record),
    findIndexedBlock: async () => 0,
  };
  for (const key of Object.values(keys)) await ask("anvil_setBalance", addressOf(key), "0xffffffffffffffffff");
});
afterEach(async () => {
  await Promise.all(ledgers.map((ledger) => ledger.stop(AbortSignal.abort())));
  ledgers = [];
  await anvil.stop();
});

const addressOf = (key: string): string => new Signer(testKey(key)).address;
const ask = (method: string, ...params: readonly unknown[]): Promise<unknown> =>
  anvil.provider.request({ method, params });
const sentBy = async (key: string): Promise<number> =>
  Number(await ask("eth_getTransactionCount", addressOf(key), "latest"));

/** The ledger of one node, which has a key of its own. */
function createNode(key: string, options: Partial<EvmLedgerOptions> = {}): EvmLedger {
  const ledger = createEvmHarness(anvil.provider, key).createLedger({ memory, ...options });
  ledgers.push(ledger);
  return ledger;
}

it.each([undefined, "deploy"] as const)(
  "a node that may not deploy fails to start until the other node has deployed the registry (registry: %s)",
  async (registry) => {
    const choice = registry === undefined ? {} : { registry };
    const first = createNode(keys.first, choice);
    const second = createNode(keys.second, choice);
    await expect(second.start({ mayDeploy: () => false })).rejects.toMatchObject({
      code: 200205,
      message: expect.stringContaining("the node that follows its chain is the one to deploy it"),
    });
    await first.start();
    await second.start({ mayDeploy: () => false });
    expect(second.registryAddress).toBe(first.registryAddress);
    expect(await sentBy(keys.second)).toBe(0);
  },
);

it("two nodes that deploy a registry at once end up with the same one", async () => {
  let saves = 0;
  const late: GroupMemory = {
    find: async () => (saves < 2 ? undefined : memory.record),
    save: async (record) => {
      saves += 1;
      return memory.save(record);
    },
  };
  const nodes = [createNode(keys.first, { memory: late }), createNode(keys.second, { memory: late })];
  const starts = await Promise.allSettled(nodes.map((node) => node.start()));
  const failures = starts.flatMap((start) => (start.status === "rejected" ? [start.reason as unknown] : []));
  expect(failures).toMatchObject([
    { code: 200205, message: expect.stringContaining("another node has recorded the registry") },
  ]);
  for (const [index, node] of nodes.entries()) if (starts[index]?.status === "rejected") await node.start();
  expect(nodes.map(({ registryAddress }) => registryAddress)).toEqual(nodes.map(() => memory.record?.registryAddress));
});

it("only the node that deployed a lost registry deploys it again at a start with `deploy`; the other node recovers", async () => {
  const first = createNode(keys.first);
  await first.start();
  const second = createNode(keys.second);
  await second.start();
  await ask("anvil_mine", "0x2");
  await ask("anvil_reorg", 3, []);
  await ask("anvil_mine", "0x1");
  await until(async () => second.view().outage?.reason.includes("is not on the chain") === true);
  await expect(createNode(keys.second, { registry: "deploy" }).start()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining("this signer did not deploy it"),
  });
  await first.stop();
  const restarted = createNode(keys.first, { registry: "deploy" });
  await restarted.start({ mayDeploy: () => false });
  expect(restarted.registryAddress).toBe(first.registryAddress);
  await until(async () => restarted.view().outage === undefined && second.view().outage === undefined);
  expect(await sentBy(keys.second)).toBe(0);
});
