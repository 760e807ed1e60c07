import { Signer } from "@stele/eth/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Address } from "../../domain/topic.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { describeLedger } from "../../ports/ledger.contract.ts";
import { toOutgoingBatch } from "../../ports/testing/outgoing-batch.ts";
import type { EvmLedger } from "./evm-ledger.ts";
import { type Anvil, startAnvil } from "./testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";
import { TestJournal } from "./testing/writer-world.ts";
import { publishGas } from "./write/gas.ts";

let anvil: Anvil;
let harnesses = 0;

beforeAll(async () => {
  anvil = await startAnvil();
});

afterAll(async () => {
  await anvil.stop();
});

/** Each test has its own key, and so its own registry. */
async function createHarness(): Promise<EvmHarness> {
  harnesses += 1;
  const name = `key ${harnesses}`;
  for (const key of [name, `stranger to ${name}`]) {
    const { address } = new Signer(testKey(key));
    await anvil.provider.request({ method: "anvil_setBalance", params: [address, "0xffffffffffffffffffff"] });
  }
  return createEvmHarness(anvil.provider, name);
}

describeLedger("EvmLedger on anvil", createHarness);

describeLedger("EvmLedger on anvil with a journal", async () => {
  const harness = await createHarness();
  const journal = new TestJournal();
  return { ...harness, createLedger: () => harness.createLedger({ journal }) };
});

describe("EvmLedger on anvil", () => {
  const unaborted = new AbortController().signal;
  const name = parseTopicName("gas");

  async function startWithTopic(): Promise<{ ledger: EvmLedger; address: Address }> {
    const ledger = (await createHarness()).createLedger();
    await ledger.start();
    await ledger.openTopic(name, unaborted);
    for await (const step of ledger.follow(undefined, unaborted)) {
      const blocks = step.kind === "blocks" ? step.blocks : [];
      const opened = blocks.flatMap(({ entries }) => entries).find(({ kind }) => kind === "topic-opened");
      if (opened !== undefined) return { ledger, address: opened.address };
    }
    throw new Error("no topic");
  }

  test("append fails with 200202 if its transaction is reverted, and the next append succeeds", async () => {
    const { ledger, address } = await startWithTopic();
    const batches = [
      toOutgoingBatch({ topic: name, address, events: [{ content: Buffer.from("a"), extensions: [] }] }),
    ];
    const registry = ledger.registryAddress;
    const code = await anvil.provider.request({ method: "eth_getCode", params: [registry, "latest"] });
    await anvil.provider.request({ method: "anvil_setCode", params: [registry, "0x60006000fd"] });
    const answers = await Promise.allSettled([ledger.append(batches, unaborted), ledger.append(batches, unaborted)]);
    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 200202 } });
    await anvil.provider.request({ method: "anvil_setCode", params: [registry, code] });
    expect(await ledger.append(batches, unaborted)).toMatchObject([{ status: "committed", firstSequence: 1 }]);
    await ledger.stop();
  });

  test.each([
    [1, 0],
    [1, 256],
    [1, 20_000],
    [64, 256],
    [1000, 256],
    [1000, 1],
  ])(
    "the gas formula covers batches of %i events of %i bytes, and is at most four times too high",
    async (count, bytes) => {
      const { ledger, address } = await startWithTopic();
      const events = Array.from({ length: count }, () => ({ content: Buffer.alloc(bytes, 0xee), extensions: [] }));
      for (const batches of [1, 1, 3]) {
        const [outcome] = await ledger.append(
          Array.from({ length: batches }, () => toOutgoingBatch({ topic: name, address, events })),
          unaborted,
        );
        if (outcome?.status !== "committed") throw new Error("not committed");
        const { used, calldataBytes } = await newestTransaction(outcome.blockNumber);
        const formula = publishGas(calldataBytes, batches);
        expect(formula).toBeGreaterThanOrEqual(used);
        expect(formula).toBeLessThan(used * (batches === 1 ? 2 : 4));
      }
      await ledger.stop();
    },
  );
});

describe("prices of gas", () => {
  test.each([
    ["a chain without base fee", ["--hardfork", "berlin"], { balance: "0xffffffffffffffffffff", type: "0x0" }],
    [
      "a chain where gas is free, with an empty account",
      ["--block-base-fee-per-gas", "0", "--disable-min-priority-fee"],
      { balance: "0x0", type: "0x2" },
    ],
  ])("a ledger opens a topic on %s", async (_, options, { balance, type }) => {
    const priced = await startAnvil(options);
    try {
      const params = [new Signer(testKey("prices")).address, balance];
      await priced.provider.request({ method: "anvil_setBalance", params });
      const ledger = createEvmHarness(priced.provider, "prices").createLedger();
      await ledger.start();
      const { blockNumber } = await ledger.openTopic(parseTopicName("prices"), new AbortController().signal);
      const block = await priced.provider.request({
        method: "eth_getBlockByNumber",
        params: [`0x${blockNumber.toString(16)}`, true],
      });
      expect(block).toMatchObject({ transactions: [{ type }] });
      await ledger.stop();
    } finally {
      await priced.stop();
    }
  });
});

async function newestTransaction(blockNumber: number): Promise<{ used: number; calldataBytes: number }> {
  const params = [`0x${blockNumber.toString(16)}`, true];
  const block = (await anvil.provider.request({ method: "eth_getBlockByNumber", params })) as {
    gasUsed: string;
    transactions: { input: string }[];
  }; // The shape that the method's specification gives. Anvil puts one transaction into each block.
  return { used: Number(block.gasUsed), calldataBytes: ((block.transactions[0]?.input.length ?? 2) - 2) / 2 };
}
