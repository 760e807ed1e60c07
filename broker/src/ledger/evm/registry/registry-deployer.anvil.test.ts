import { Signer, signTransaction, toHex } from "@stele/eth/node";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import type { GroupRecord } from "../../../ports/group-records.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { type Anvil, startAnvil } from "../testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "../testing/evm-harness.ts";
import { connectionLost, InterceptedProvider, type Interceptor, passAll } from "../testing/intercepted-provider.ts";
import { TestJournal, until } from "../testing/writer-world.ts";
import { createdAddress } from "./find-registry.ts";
import type { GroupMemory } from "./settle-registry.ts";

const key = "deployer";
const { address: deployer } = new Signer(testKey(key));
const registry = createdAddress(deployer, 0);
let anvil: Anvil;
/** The network between the ledgers and anvil. */
let provider: InterceptedProvider;
let harness: EvmHarness;
let memory: GroupMemory & { record: GroupRecord | undefined; height: number };

beforeEach(async () => {
  anvil = await startAnvil();
  provider = new InterceptedProvider(anvil.provider);
  harness = createEvmHarness(provider, key);
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
const hasCode = async (address = registry): Promise<boolean> => (await ask("eth_getCode", address, "latest")) !== "0x";
const nonceOf = async (): Promise<number> => Number(await ask("eth_getTransactionCount", deployer, "latest"));

async function startOnce(options: Partial<EvmLedgerOptions> = {}): Promise<Address> {
  const ledger = harness.createLedger({ memory, ...options });
  await ledger.start();
  await ledger.stop();
  return ledger.registryAddress;
}

it("records a registry once it is final; if a reorg removes it before, deploys it again", async () => {
  const started = startOnce({ finality: 3 });
  await until(hasCode);
  await ask("anvil_mine", "0x2");
  const release = provider.holdSends();
  await ask("anvil_reorg", 3, []);
  expect(await hasCode()).toBe(false);
  release();
  await until(hasCode);
  expect(memory.record).toBeUndefined();
  await ask("anvil_mine", "0x3");
  expect(await started).toBe(registry);
  expect(memory.record?.registryAddress).toBe(registry);
});

it("the next start resumes a deployment that was not final in time, even if the setting is `deploy`", async () => {
  const options = { memory, journal: new TestJournal(), finality: 3, deadlineMs: 2000, registry: "deploy" } as const;
  const ledger = harness.createLedger(options);
  await expect(ledger.start()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringMatching(/is not final yet: it is in block 1, and the newest final block is 0/),
  });
  await ask("anvil_mine", "0x3");
  await ledger.start();
  await ledger.stop();
  expect(ledger.registryAddress).toBe(registry);
});

it("deploys again if another transaction uses the deployment's nonce", async () => {
  const started = startOnce({ finality: 3 });
  await until(hasCode);
  await ask("anvil_mine", "0x2");
  await ask("anvil_setAutomine", false);
  await ask("anvil_reorg", 3, []);
  await ask("anvil_setNonce", deployer, "0x1");
  await ask("anvil_setAutomine", true);
  const second = createdAddress(deployer, 1);
  await until(async () => hasCode(second));
  await ask("anvil_mine", "0x3");
  expect(await started).toBe(second);
});

it("a remembered registry that the chain lost is deployed again at its address only if the setting is `deploy`", async () => {
  await startOnce();
  await ask("anvil_mine", "0x2");
  await ask("anvil_reorg", 3, []);
  await expect(startOnce()).rejects.toMatchObject({
    code: 200205,
    hints: expect.arrayContaining([expect.stringContaining("registry set to deploy")]),
  });
  expect(await hasCode()).toBe(false);
  expect(await startOnce({ registry: "deploy" })).toBe(registry);
  expect(await hasCode()).toBe(true);
});

it("a process that was killed before it remembered its deployment deploys no second registry", async () => {
  const journal = new TestJournal();
  const killed = { ...memory, save: async () => Promise.reject(new Error("killed")) };
  await expect(startOnce({ journal, registry: "deploy", memory: killed })).rejects.toThrow("killed");
  expect(await hasCode()).toBe(true);
  expect(await startOnce({ journal, registry: "deploy" })).toBe(registry);
  expect(await nonceOf()).toBe(1);
  expect(await journal.listTransactions("", deployer)).toEqual([]);
});

it("a process that was killed while its deployment was pending sends the same one again", async () => {
  const journal = new TestJournal();
  await ask("anvil_setAutomine", false);
  const options = { journal, registry: "deploy", deadlineMs: 300 } as const;
  await expect(startOnce(options)).rejects.toMatchObject({ code: 200205 });
  await ask("anvil_dropAllTransactions");
  await ask("anvil_setAutomine", true);
  const [entry] = await journal.listTransactions("", deployer);
  expect(await startOnce({ ...options, deadlineMs: 10_000 })).toBe(registry);
  expect(await ask("eth_getTransactionReceipt", entry?.variants[0]?.hash)).not.toBeNull();
});

it("the next start sends the same deployment of a lost registry again if no block included it in time", async () => {
  const options = { journal: new TestJournal(), registry: "deploy" } as const;
  await startOnce(options);
  await ask("anvil_reorg", 1, []);
  await ask("anvil_setAutomine", false);
  await expect(startOnce({ ...options, deadlineMs: 300 })).rejects.toMatchObject({ code: 200205 });
  const [entry] = await options.journal.listTransactions("", deployer);
  expect(entry).toBeDefined();
  await ask("anvil_dropAllTransactions");
  await ask("anvil_setAutomine", true);
  expect(await startOnce(options)).toBe(registry);
  expect(await ask("eth_getTransactionReceipt", entry?.variants[0]?.hash)).not.toBeNull();
});

it("a lost registry is deployed again at its address even if the journal has a deployment with a later nonce", async () => {
  const options = { journal: new TestJournal(), registry: "deploy", deadlineMs: 5000 } as const;
  await startOnce(options);
  const killed = { find: async () => undefined, save: async () => Promise.reject(new Error("killed")) };
  await expect(startOnce({ ...options, memory: killed })).rejects.toThrow("killed");
  expect(await options.journal.listTransactions("", deployer)).toMatchObject([{ nonce: 1 }]);
  await ask("anvil_reorg", 2, []);
  expect(await startOnce(options)).toBe(registry);
  expect([await hasCode(), await options.journal.listTransactions("", deployer)]).toEqual([true, []]);
});

it("a lost registry is not deployed again while the chain is behind the index", async () => {
  await startOnce();
  await ask("anvil_reorg", 1, []);
  memory.height = 55;
  await expect(startOnce({ registry: "deploy" })).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining("the chain is at block 1, the index at 55: the node may be behind"),
  });
  expect(await hasCode()).toBe(false);
});

it("fails for a lost registry of another owner, and suggests waiting or using another group", async () => {
  await startOnce();
  const other = createEvmHarness(anvil.provider, "member").createLedger({ memory, registry });
  await ask("anvil_reorg", 1, []);
  await expect(other.start()).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining(`the group's topic registry ${registry} is not on the chain`),
    hints: expect.arrayContaining([
      expect.stringContaining("recovers by itself"),
      expect.stringContaining("another group"),
    ]),
  });
});

/** Passes the first `times` requests of one method to `treat`. */
function first(times: number, method: string, treat: Interceptor): void {
  let left = times;
  provider.current = async (request, pass) => {
    if (request.method !== method || left === 0) return pass();
    left -= 1;
    return treat(request, pass);
  };
}

it("the next start resends a deployment that got no answer, and does not deploy twice", async () => {
  await ask("anvil_setAutomine", false);
  first(1, "eth_sendRawTransaction", async (_, pass) => {
    await pass();
    throw connectionLost();
  });
  const ledger = harness.createLedger({ memory, journal: new TestJournal(), registry: "deploy" });
  await expect(ledger.start()).rejects.toMatchObject({ code: 200205 });
  let sends = 0;
  provider.current = async (request, pass) => {
    sends += request.method === "eth_sendRawTransaction" ? 1 : 0;
    return pass();
  };
  const started = ledger.start();
  await until(async () => sends > 0);
  await ask("anvil_mine", "0x1");
  await started;
  await ledger.stop();
  expect(ledger.registryAddress).toBe(registry);
  expect(await nonceOf()).toBe(1);
});

it("reports a deployment refused for its fee, and the next start offers the current fee", async () => {
  first(1, "eth_sendRawTransaction", async () => {
    throw Object.assign(new Error("max fee per gas less than block base fee"), { code: -32_000 });
  });
  const ledger = harness.createLedger({ memory, journal: new TestJournal() });
  await expect(ledger.start()).rejects.toMatchObject({
    code: 200202,
    message: expect.stringContaining(
      "the registry's deployment was refused: eth_sendRawTransaction: max fee per gas less than",
    ),
  });
  await ask("anvil_setNextBlockBaseFeePerGas", "0x2540be40000");
  await ask("anvil_mine", "0x1");
  provider.current = passAll;
  await ledger.start();
  await ledger.stop();
  expect(ledger.registryAddress).toBe(registry);
});

it("reports a reverted deployment, and the next start sends another", async () => {
  let isReverted = true;
  provider.current = async ({ method }, pass) => {
    const answer = await pass();
    if (method !== "eth_getTransactionReceipt" || answer === null || !isReverted) return answer;
    isReverted = false;
    return { ...(answer as object), status: "0x0" }; // By the specification, an answer that is not null is a receipt object.
  };
  const ledger = harness.createLedger({ memory, journal: new TestJournal(), registry: "deploy" });
  await expect(ledger.start()).rejects.toMatchObject({
    code: 200202,
    message: expect.stringContaining("the registry's deployment was reverted"),
  });
  expect(memory.record).toBeUndefined();
  await ledger.start();
  await ledger.stop();
  expect(ledger.registryAddress).toBe(createdAddress(deployer, 1));
});

it("waits for a receipt that the endpoint lacks although the nonce is used", async () => {
  first(8, "eth_getTransactionReceipt", async () => null);
  expect(await startOnce()).toBe(registry);
  expect(await nonceOf()).toBe(1);
});

it.each([1, 2])(
  "deploys no second registry if the chain node's transaction count omits the first deployment in its first answers (%d)",
  async (times) => {
    await startOnce({ memory: { find: async () => undefined, save: async (record) => record } });
    await ask("anvil_setNextBlockBaseFeePerGas", "0x2540be40000"); // Otherwise the second deployment would be the same transaction.
    await ask("anvil_mine", "0x1");
    first(times, "eth_getTransactionCount", async () => "0x0");
    expect(await startOnce()).toBe(registry);
    expect(await nonceOf()).toBe(1);
  },
);

it("remembers an existing registry only once a final block contains it", async () => {
  await startOnce({ memory: { find: async () => undefined, save: async (record) => record } });
  await expect(startOnce({ finality: 3 })).rejects.toMatchObject({
    code: 200205,
    message: expect.stringContaining(`the topic registry ${registry} is in no final block yet`),
  });
  expect(memory.record).toBeUndefined();
  await ask("anvil_mine", "0x3");
  expect(await startOnce({ finality: 3 })).toBe(registry);
  expect(memory.record?.registryAddress).toBe(registry);
});

it("deploys a lost registry again with its old nonce, once the nonces before it are used", async () => {
  const second = createdAddress(deployer, 1);
  await startOnce({ memory: { find: async () => undefined, save: async (record) => record } });
  expect(await startOnce({ registry: "deploy" })).toBe(second);
  await ask("anvil_reorg", 2, []);
  expect(await nonceOf()).toBe(0);
  const started = startOnce({ registry: "deploy" });
  await until(async () => JSON.stringify(await ask("txpool_status")).includes('"queued":"0x1"'));
  const fees = { kind: "eip1559", maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 1n } as const;
  const filler = { chainId: 31_337, nonce: 0, fees, gas: 21_000, to: deployer, data: new Uint8Array(0) };
  await ask("eth_sendRawTransaction", toHex(signTransaction(filler, new Signer(testKey(key))).raw));
  expect(await started).toBe(second);
  expect([await hasCode(), await hasCode(second)]).toEqual([false, true]);
});

it.each([false, true])(
  "raises the fee of a deployment that the base fee has overtaken (after a restart of the process: %s)",
  async (isKilled) => {
    const journal = new TestJournal();
    const options = { memory, journal, registry: "deploy", deadlineMs: 300 } as const;
    const sent = new Set<unknown>();
    provider.current = async ({ method, params }, pass) => {
      const [raw] = params ?? [];
      if (method !== "eth_sendRawTransaction") return pass();
      // Like geth, which keeps a transaction until its price suffices.
      if (sent.has(raw)) throw Object.assign(new Error("already known"), { code: -32_000 });
      sent.add(raw);
      return pass();
    };
    await ask("anvil_setAutomine", false);
    const ledger = harness.createLedger(options);
    await expect(ledger.start()).rejects.toMatchObject({ code: 200205 });
    await ask("anvil_setNextBlockBaseFeePerGas", "0x2540be40000");
    await ask("anvil_mine", "0x1");
    expect(await hasCode()).toBe(false);
    await ask("anvil_setAutomine", true);
    const next = isKilled ? harness.createLedger({ ...options, deadlineMs: 5000 }) : ledger;
    await vi.waitFor(() => next.start(), { timeout: 10_000 });
    await next.stop();
    expect([next.registryAddress, await nonceOf()]).toEqual([registry, 1]);
  },
);
