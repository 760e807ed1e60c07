import { afterEach, beforeEach, expect, it } from "vitest";
import type { Address } from "../../domain/topic.ts";
import type { GroupRecord } from "../../ports/group-records.ts";
import type { EvmLedgerOptions } from "./evm-ledger.ts";
import { createdAddress } from "./find-registry.ts";
import { Signer } from "./native-crypto.ts";
import type { GroupMemory } from "./settle-registry.ts";
import { type Anvil, startAnvil } from "./testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";
import { until } from "./testing/writer-world.ts";

const key = "deployer";
const { address: deployer } = new Signer(testKey(key));
const registry = createdAddress(deployer, 0);
let anvil: Anvil;
let harness: EvmHarness;
let memory: GroupMemory & { record: GroupRecord | undefined; height: number };

beforeEach(async () => {
  anvil = await startAnvil();
  harness = createEvmHarness(anvil.provider, key);
  memory = {
    record: undefined,
    height: 0,
    find: async () => memory.record,
    save: async (record) => (memory.record ??= record),
    findIndexedBlock: async () => memory.height,
  };
  await ask("anvil_setBalance", deployer, "0xffffffffffffffffff");
});
afterEach(async () => anvil.stop());

const ask = (method: string, ...params: readonly unknown[]): Promise<unknown> =>
  anvil.provider.request({ method, params });
const hasCode = async (): Promise<boolean> => (await ask("eth_getCode", registry, "latest")) !== "0x";

async function startOnce(options: Partial<EvmLedgerOptions> = {}): Promise<Address> {
  const ledger = harness.createLedger({ memory, ...options });
  await ledger.start();
  await ledger.stop();
  return ledger.registryAddress;
}

it("a registry is remembered once it is final; taken off the chain before, it is deployed again", async () => {
  const started = startOnce({ finality: 3 });
  await until(hasCode);
  await ask("anvil_mine", "0x2");
  await ask("anvil_reorg", 3, []);
  expect(await hasCode()).toBe(false);
  await until(hasCode);
  expect(memory.record).toBeUndefined();
  await ask("anvil_mine", "0x3");
  expect(await started).toBe(registry);
  expect(memory.record?.registryAddress).toBe(registry);
});

it("one that is not final in time is taken up by the next start, also with `deploy`", async () => {
  const ledger = harness.createLedger({ memory, finality: 3, deadlineMs: 500, registry: "deploy" });
  await expect(ledger.start()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringMatching(/is not final yet: it is in block 1, and the newest final block is 0/),
  });
  await ask("anvil_mine", "0x3");
  await ledger.start();
  await ledger.stop();
  expect(ledger.registryAddress).toBe(registry);
});

it("where another transaction takes its nonce, it is deployed anew", async () => {
  const started = startOnce({ finality: 3 });
  await until(hasCode);
  await ask("anvil_mine", "0x2");
  await ask("anvil_setAutomine", false);
  await ask("anvil_reorg", 3, []);
  await ask("anvil_setNonce", deployer, "0x1");
  await ask("anvil_setAutomine", true);
  const second = createdAddress(deployer, 1);
  await until(async () => (await ask("eth_getCode", second, "latest")) !== "0x");
  await ask("anvil_mine", "0x3");
  expect(await started).toBe(second);
});

it("a remembered one that the chain has lost is deployed again at its place", async () => {
  await startOnce();
  await ask("anvil_mine", "0x2");
  await ask("anvil_reorg", 3, []);
  expect(await hasCode()).toBe(false);
  expect(await startOnce()).toBe(registry);
  expect(await hasCode()).toBe(true);
});

it("nothing is deployed again on a chain that is behind the index", async () => {
  await startOnce();
  await ask("anvil_reorg", 1, []);
  memory.height = 55;
  await expect(startOnce()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining("the chain is at block 1, the index at 55: the node may be behind"),
  });
  expect(await hasCode()).toBe(false);
});

it("a remembered one of somebody else that is lost is waited for, and nobody is told to leave the address out", async () => {
  await startOnce();
  const other = createEvmHarness(anvil.provider, "member").createLedger({ memory, registry });
  await ask("anvil_reorg", 1, []);
  await expect(other.start()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining(`the group's topic registry ${registry} is no longer on the chain`),
    hints: [expect.stringContaining("comes back by itself"), expect.stringContaining("another group")],
  });
});
