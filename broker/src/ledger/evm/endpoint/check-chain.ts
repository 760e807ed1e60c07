import type { Hash } from "../../../domain/topic.ts";
import type { ChainIdentity, Rpc } from "./rpc.ts";

/** The chain that an endpoint must serve. Until the first endpoint answers, the genesis hash is unknown, and so is the chain id unless it is configured. */
export interface ExpectedChain {
  readonly chainId: number | undefined;
  readonly genesisHash: Hash | undefined;
}

/** Asks which chain the endpoint serves. @throws RpcFailure, also if the answer lacks the chain id or the first block. */
export async function readIdentity(rpc: Rpc): Promise<ChainIdentity> {
  return { chainId: await rpc.chainId(), genesisHash: (await rpc.header(0)).hash };
}

/** How a chain differs from the expected one; undefined if it does not. */
export function findDifference(found: ChainIdentity, expected: ExpectedChain): string | undefined {
  if (expected.chainId !== undefined && found.chainId !== expected.chainId) {
    return `serves chain ${found.chainId}, and the group is on chain ${expected.chainId}`;
  }
  if (expected.genesisHash !== undefined && found.genesisHash !== expected.genesisHash) {
    return `serves another chain with the same id ${found.chainId}: its first block is ${found.genesisHash}, and the group's is ${expected.genesisHash}. For the other chain, use another data folder or another group`;
  }
  return undefined;
}
