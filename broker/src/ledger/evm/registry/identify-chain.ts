import { BrokerError } from "@stele/wire";
import type { ChainIdentity, Rpc } from "../endpoint/rpc.ts";
import type { GroupMemory } from "./settle-registry.ts";

export interface IdentifyOptions {
  readonly memory: GroupMemory;
  /** The expected chain; any if undefined. */
  readonly chainId: number | undefined;
}

/** Which chain the endpoint serves. @throws BrokerError 200205 if it is not the expected one; RpcFailure. */
export async function identifyChain(rpc: Rpc, options: IdentifyOptions): Promise<ChainIdentity> {
  const remembered = await options.memory.find();
  if (remembered !== undefined) rpc.provider.expectChain?.(remembered);
  const chainId = await rpc.chainId();
  const wanted = options.chainId ?? chainId;
  if (chainId === wanted) return { chainId, genesisHash: (await rpc.header(0)).hash };
  throw new BrokerError("chainUnreachable", {
    details: `the endpoint serves chain ${chainId}, chain ${wanted} is configured`,
  });
}
