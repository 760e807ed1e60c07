import { startEmbeddedChain } from "@stele/chain";
import { Signer, toQuantity } from "@stele/eth/node";
import { expect, test } from "vitest";
import { parseTopicName } from "../../../domain/topic-name.ts";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";

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

test("a close fails with 200205, not 100101, while a chain node that lags behind the topic's opening answers", async () => {
  const genesisAccounts = [new Signer(testKey("lagging state")).address];
  const chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
  const provider = new InterceptedProvider(chain);
  const ledger = createEvmHarness(provider, "lagging state").createLedger();
  await ledger.start();
  const before = toQuantity(await ledger.finalBlockNumber(unaborted));
  const topic = parseTopicName("lagging/state");
  await ledger.openTopic(topic, unaborted);
  provider.current = async ({ method, params = [] }, pass) => {
    if (method !== "eth_call") return pass();
    if (params[1] === "latest") return chain.request({ method, params: [params[0], before] });
    throw Object.assign(new Error("header not found"), { code: -32_000 });
  };
  await expect(ledger.closeTopic(topic, unaborted)).rejects.toMatchObject({ code: 200205 });
  expect(await ledger.findWriters(topic, unaborted).catch(({ code }: { readonly code: unknown }) => code)).toBe(200205);
  provider.current = passAll;
  await ledger.closeTopic(topic, unaborted);
  await ledger.stop();
  await chain.stop();
});
