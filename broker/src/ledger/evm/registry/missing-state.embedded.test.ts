import { startEmbeddedChain } from "@stele/chain";
import { Signer } from "@stele/eth/node";
import { expect, test } from "vitest";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";

test.each(["header not found", "missing trie node 1234"])(
  "a start fails with 200205 while the chain node lacks state, and later finds the registry: %s",
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
    const ledger = harness.createLedger();
    await expect(ledger.start()).rejects.toMatchObject({ code: 200205 });
    provider.current = passAll;
    await ledger.start();
    expect(ledger.registryAddress).toBe(first.registryAddress);
    await ledger.stop();
    await chain.stop();
  },
);
