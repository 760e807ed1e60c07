import type { BrokerClient, GroupChain } from "./broker-client.ts";
import type { ChainClient } from "./chain-client.ts";
import { Unverifiable } from "./unverifiable.ts";

/**
 * Whether the node certainly serves the chain of the broker's group; false if the broker does not name its chain.
 * @throws Unverifiable if the node serves another chain, which says nothing about this group.
 */
export async function confirmSameChain(chain: ChainClient, broker: BrokerClient): Promise<boolean> {
  const expected = await broker.findGroupChain();
  if (expected === undefined) return false;
  const { chainId, genesisHash } = await chain.identity();
  if (chainId === expected.chainId && genesisHash === expected.genesisHash) return true;
  const served = `chain ${chainId} with the first block ${genesisHash}`;
  throw new Unverifiable(
    `${chain.name} serves another chain than ${describe(expected)}: ${served}; pass --rpc of a node of the group's chain`,
  );
}

function describe({ groupId, chainId, genesisHash }: GroupChain): string {
  return `group ${groupId} (chain ${chainId} with the first block ${genesisHash})`;
}
