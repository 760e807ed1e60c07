import { topicRegistryAbi } from "@stele/contracts";
import { decodeFunctionResult, encodeFunctionData, getContractAddress } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { isRevert, RpcFailure } from "../endpoint/rpc-failure.ts";

/**
 * How many of a key's first nonces are searched for its registry. Usually the key's first transaction deployed it, but a failed deployment
 * or another transaction may have come first.
 */
export const registryNoncesMax = 16;

/**
 * The registry that `deployer` created, undefined if there is none among its first transactions; and how many transactions it has sent. Reads both in the state
 * of one block. Of several chain nodes behind one address, one may count the deployment, and another that lags may not have the code yet: the block number
 * makes the second refuse.
 */
export async function findRegistry(
  rpc: Rpc,
  deployer: Address,
): Promise<{ readonly address: Address | undefined; readonly used: number }> {
  const { number: at } = await rpc.header("latest");
  const used = await rpc.transactionCount(deployer, at);
  for (let nonce = 0; nonce < Math.min(used, registryNoncesMax); nonce += 1) {
    const address = createdAddress(deployer, nonce);
    if (await isRegistry(rpc, { address, from: deployer, at })) return { address, used };
  }
  return { address: undefined, used };
}

interface IsRegistryOptions {
  readonly address: Address;
  readonly from: Address;
  /** The block whose state the call reads; the newest if omitted. */
  readonly at?: number;
}

/** Whether the code at an address answers like a registry. */
export async function isRegistry(rpc: Rpc, { address, from, at }: IsRegistryOptions): Promise<boolean> {
  if ((await rpc.code(address, at)).length <= 2) return false;
  const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "topics", args: [0n, 0n] });
  try {
    const answer = await rpc.call({ from, to: address, data }, at);
    return decodeFunctionResult({ abi: topicRegistryAbi, functionName: "topics", data: answer }).length === 0;
  } catch (error) {
    if (error instanceof RpcFailure && !isRevert(error)) throw error;
    return false;
  }
}

/** The address of the contract that `deployer` creates with this nonce. */
export function createdAddress(deployer: Address, nonce: number): Address {
  return getContractAddress({ from: deployer, nonce: BigInt(nonce) }).toLowerCase() as Address; // An address in lower case.
}
