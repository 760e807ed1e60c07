import { topicRegistryAbi } from "@stele/contracts";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import type { Address, Topic } from "../../domain/topic.ts";
import { fromHex } from "./hex.ts";
import type { Rpc } from "./rpc.ts";

/** What the ledger asks the registry. */
export type TopicStatus = "never-opened" | "open" | "closed";

const zeroAddress: Address = `0x${"0".repeat(40)}`;

/** The registry's views, and the calldata of what changes topics. */
export class Registry {
  readonly address: Address;
  readonly #rpc: Rpc;
  readonly #from: Address;

  constructor(rpc: Rpc, options: { readonly address: Address; readonly from: Address }) {
    this.#rpc = rpc;
    this.address = options.address;
    this.#from = options.from;
  }

  async statusOf(name: string): Promise<TopicStatus> {
    const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "topicOf", args: [name] });
    const topic = decodeFunctionResult({
      abi: topicRegistryAbi,
      functionName: "topicOf",
      data: await this.#call(data),
    });
    if (topic === zeroAddress) return "never-opened";
    return (await this.#stateOf(topic)).closed ? "closed" : "open";
  }

  async isTopic(address: Topic["address"]): Promise<boolean> {
    return (await this.#stateOf(address)).topic !== zeroAddress;
  }

  async #stateOf(address: Address): Promise<{ readonly topic: Address; readonly closed: boolean }> {
    const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "stateOf", args: [address] });
    return decodeFunctionResult({ abi: topicRegistryAbi, functionName: "stateOf", data: await this.#call(data) });
  }

  async #call(data: `0x${string}`): Promise<`0x${string}`> {
    return this.#rpc.call({ from: this.#from, to: this.address, data });
  }
}

export function openCalldata(name: string): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "open", args: [name] }));
}

export function closeCalldata(name: string): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "close", args: [name] }));
}
