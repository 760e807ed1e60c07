import { startEmbeddedChain } from "@stele/chain";
import { Signer, toQuantity } from "@stele/eth/node";
import { expect, onTestFinished, test } from "vitest";
import { parseTopicName } from "../../../domain/topic-name.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";
import { noMemory } from "./settle-registry.ts";

const unaborted = new AbortController().signal;

test.each(["header not found", "missing trie node 1234"])(
  "a start, an open and a close fail with 200205 while the chain node lacks state, and later succeed: %s",
  async (message) => {
    const genesisAccounts = [new Signer(testKey("missing state")).address];
    const chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
    const provider = new InterceptedProvider(chain);
    const harness = createEvmHarness(provider, "missing state");
    const first = harness.createLedger();
    await first.start();
    await first.stop();
    provider.current = async (request, pass) => {
      if (request.method !== "eth_call") return pass();
      throw Object.assign(new Error(message), { code: -32_000 });
    };
    const lackState = provider.current;
    const ledger = harness.createLedger();
    const missing = { code: 200205, message: expect.stringContaining(message) };
    await expect(ledger.start()).rejects.toMatchObject(missing);
    provider.current = passAll;
    await ledger.start();
    expect(ledger.registryAddress).toBe(first.registryAddress);
    const topic = parseTopicName("missing/state");
    provider.current = lackState;
    await expect(ledger.openTopic(topic, unaborted)).rejects.toMatchObject(missing);
    await expect(ledger.closeTopic(topic, unaborted)).rejects.toMatchObject(missing);
    provider.current = passAll;
    await ledger.openTopic(topic, unaborted);
    await ledger.closeTopic(topic, unaborted);
    await ledger.stop();
    await chain.stop();
  },
);

/**
 * A ledger on a chain of its own. `rememberBlock` returns a function that makes the chain node lag from then on: it answers calls for the latest block from the
 * remembered block, and refuses calls that name a block by number. `catchUp` ends the lag.
 */
async function startLedger(name: string, options: Partial<EvmLedgerOptions> = {}) {
  const genesisAccounts = [new Signer(testKey(name)).address];
  const chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
  const provider = new InterceptedProvider(chain);
  const ledger = createEvmHarness(provider, name).createLedger(options);
  await ledger.start();
  onTestFinished(async () => {
    await ledger.stop();
    await chain.stop();
  });
  const rememberBlock = async (): Promise<() => void> => {
    const block = toQuantity(await ledger.finalBlockNumber(unaborted));
    return () => {
      provider.current = async ({ method, params = [] }, pass) => {
        if (method !== "eth_call") return pass();
        if (params[1] === "latest") return chain.request({ method, params: [params[0], block] });
        throw Object.assign(new Error("header not found"), { code: -32_000 });
      };
    };
  };
  return { ledger, rememberBlock, catchUp: () => (provider.current = passAll) };
}

const isBehind = { code: 200205 };

test("a close and a look-up of the writers fail with 200205 while a chain node lags behind the topic's opening", async () => {
  const { ledger, rememberBlock, catchUp } = await startLedger("lagging state");
  const topic = parseTopicName("lagging/state");
  const lag = await rememberBlock();
  await ledger.openTopic(topic, unaborted);
  lag();
  await expect(ledger.closeTopic(topic, unaborted)).rejects.toMatchObject(isBehind);
  await expect(ledger.findWriters(topic, unaborted)).rejects.toMatchObject(isBehind);
  catchUp();
  await ledger.closeTopic(topic, unaborted);
});

test("a close fails with 200205 while a chain node lags behind the topic's reopening", async () => {
  const { ledger, rememberBlock, catchUp } = await startLedger("lagging reopening");
  const topic = parseTopicName("lagging/reopening");
  await ledger.openTopic(topic, unaborted);
  const { blockNumber } = await ledger.closeTopic(topic, unaborted);
  const lag = await rememberBlock();
  await ledger.openTopic(topic, unaborted);
  lag();
  await expect(ledger.closeTopic(topic, unaborted)).rejects.toMatchObject(isBehind);
  catchUp();
  expect((await ledger.closeTopic(topic, unaborted)).blockNumber).toBe(blockNumber + 2);
});

test("a close fails with 200205 while a chain node lags behind the index, which another broker made", async () => {
  const memory = { ...noMemory, findIndexedBlock: async () => 100 };
  const { ledger } = await startLedger("lagging index", { memory });
  await expect(ledger.closeTopic(parseTopicName("a"), unaborted)).rejects.toMatchObject(isBehind);
});
