import { Signer } from "@stele/eth/node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { GroupRecord } from "../../../ports/group-records.ts";
import { EndpointSet } from "../endpoint/endpoint-set.ts";
import { type Anvil, startAnvil } from "../testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider } from "../testing/intercepted-provider.ts";
import type { GroupMemory } from "./settle-registry.ts";

let anvil: Anvil;
let harness: EvmHarness;
beforeAll(async () => {
  anvil = await startAnvil();
});
afterAll(async () => anvil.stop());

/** Gives the key `name` funds and an empty memory. */
async function begin(name: string): Promise<{ memory: GroupMemory & { record: GroupRecord | undefined } }> {
  harness = createEvmHarness(anvil.provider, name);
  const { address } = new Signer(testKey(name));
  await anvil.provider.request({ method: "anvil_setBalance", params: [address, "0xffffffffffffffffff"] });
  const memory = {
    record: undefined as GroupRecord | undefined,
    find: async () => memory.record,
    save: async (record: GroupRecord) => (memory.record ??= record),
  };
  return { memory };
}

async function registryOf(options: Parameters<EvmHarness["createLedger"]>[0]): Promise<Address> {
  const ledger = harness.createLedger(options);
  await ledger.start();
  await ledger.stop();
  return ledger.registryAddress;
}

describe("a group's registry", () => {
  it("the first start deploys a registry and records it, and later starts use it", async () => {
    const { memory } = await begin("first");
    const registry = await registryOf({ memory });
    expect(memory.record).toMatchObject({ chainId: 31_337, registryAddress: registry });
    expect(await registryOf({ memory })).toBe(registry);
    expect(await registryOf({})).toBe(registry);
  });

  it("deploys one registry with registry `deploy`, even if the signer has deployed another before", async () => {
    const { memory } = await begin("second");
    const first = await registryOf({});
    const second = await registryOf({ memory, registry: "deploy" });
    expect(second).not.toBe(first);
    expect(await registryOf({ memory, registry: "deploy" })).toBe(second);
  });

  it("finds a registry by its record, even if the key had sent 100 transactions before", async () => {
    const { memory } = await begin("third");
    const { address } = new Signer(testKey("third"));
    await anvil.provider.request({ method: "anvil_setNonce", params: [address, "0x64"] });
    await expect(registryOf({})).rejects.toThrow(/finds only a registry that one of the first 16 created/);
    const registry = await registryOf({ memory });
    expect(await registryOf({ memory })).toBe(registry);
  });

  it("refuses a registry that is not the remembered one, and an address without a registry", async () => {
    const { memory } = await begin("fourth");
    const registry = await registryOf({ memory });
    const other = await registryOf({ registry: "deploy" });
    await expect(registryOf({ memory, registry: other })).rejects.toThrow(
      `the group is on the registry ${registry}, and ${other} is configured`,
    );
    const nowhere: Address = `0x${"11".repeat(20)}`;
    await expect(registryOf({ registry: nowhere })).rejects.toThrow(`there is no topic registry at ${nowhere}`);
  });

  it.each([
    ["chain id", { chainId: 5 }],
    ["first block", { genesisHash: `0x${"22".repeat(32)}` }],
  ] as const)("does not use the registry if the chain's %s is not the remembered one", async (_, difference) => {
    const { memory } = await begin("fifth");
    await registryOf({ memory });
    if (memory.record !== undefined) memory.record = { ...memory.record, ...difference };
    const provider = new EndpointSet({ addresses: [anvil.url], clock: createSystemClock(), logger: silentLogger });
    await expect(registryOf({ memory, provider })).rejects.toMatchObject({
      code: 200205,
      message: expect.stringContaining("and the group"),
    });
    await provider.close();
  });

  it("does not start if the endpoint, or one of two chain nodes behind it, serves another chain than the remembered one", async () => {
    const { memory } = await begin("sixth");
    await registryOf({ memory });
    const provider = new InterceptedProvider(anvil.provider);
    provider.current = async ({ method }, pass) => (method === "eth_chainId" ? "0x5" : pass());
    await expect(registryOf({ memory, provider })).rejects.toThrow("serves chain 5, and the group is on chain 31337");
  });
});
