import { startEmbeddedChain } from "@stele/chain";
import { custom } from "viem";
import { registryCode } from "./testing/registry-code.ts";
import { alice, bob, carol } from "./testing/registry-fixture.ts";
import type { TestChain } from "./testing/test-chain.ts";
import { describeTopicRegistry } from "./topic-registry.contract.ts";

describeTopicRegistry("the embedded chain", startChain);

async function startChain(): Promise<TestChain> {
  const genesisAccounts = [alice, bob, carol].map((account) => account.address);
  const options = { file: ":memory:", chainId: 31_337, genesisAccounts, checkInterval: 1 } as const;
  const chain = await startEmbeddedChain({ ...options, registryCode });
  const mismatches: Error[] = [];
  chain.on("mismatch", (error) => mismatches.push(error));
  const stop = async (): Promise<void> => {
    await chain.stop();
    if (mismatches.length > 0) throw new AggregateError(mismatches, "the chain's own code and the EVM disagree");
  };
  return { transport: custom(chain, { retryCount: 0 }), stop };
}
