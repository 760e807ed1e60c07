import type { Hash } from "../../../domain/topic.ts";
import { findCount } from "./answer.ts";
import type { ChainIdentity } from "./rpc.ts";
import type { RpcCall } from "./connection.ts";

/** The chain that an endpoint must serve. Until the first endpoint answers, the genesis hash is unknown, and so is a chain id that is not configured. */
export interface ExpectedChain {
  readonly chainId: number | undefined;
  readonly genesisHash: Hash | undefined;
}

/** Asks an endpoint which chain it serves. @throws TypeError if the endpoint returns no chain id or no first block. */
export async function readIdentity(request: (call: RpcCall) => Promise<unknown>): Promise<ChainIdentity> {
  const chainId = findCount(await request({ method: "eth_chainId" }));
  if (chainId === undefined) throw new TypeError("the endpoint returned no chain id");
  const block = await request({ method: "eth_getBlockByNumber", params: ["0x0", false] });
  const { hash } = (block ?? {}) as { hash?: unknown }; // A block, or anything else; checked below.
  if (typeof hash !== "string") throw new TypeError("the endpoint returned no first block");
  return { chainId, genesisHash: hash as Hash }; // Only compared with other hashes.
}

/** How a chain differs from the expected one; undefined if it does not. */
export function findDifference(found: ChainIdentity, expected: ExpectedChain): string | undefined {
  if (expected.chainId !== undefined && found.chainId !== expected.chainId) {
    return `serves chain ${found.chainId}, and the group is on chain ${expected.chainId}`;
  }
  if (expected.genesisHash !== undefined && found.genesisHash !== expected.genesisHash) {
    return `serves another chain of id ${found.chainId}: its first block is ${found.genesisHash}, and the group's is ${expected.genesisHash}. For the other chain, use another data folder or another group`;
  }
  return undefined;
}
