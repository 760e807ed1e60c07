import { everyone, topicRegistryAbi } from "@stele/contracts";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import type { Address } from "../../domain/topic.ts";
import { fromHex, type Hex } from "./hex.ts";
import type { Rpc } from "./rpc.ts";

/** What the ledger asks the registry. */
export type TopicStatus = "never-opened" | "open" | "closed";

const zeroAddress: Address = `0x${"0".repeat(40)}`;

export interface RegistryOptions {
  readonly address: Address;
  readonly from: Address;
  /** What is thrown when there is no code at the address. */
  readonly onMissing: () => Error;
}

/** The registry's views, and the calldata of what changes topics. */
export class Registry {
  readonly address: Address;
  readonly #rpc: Rpc;
  readonly #options: RegistryOptions;

  constructor(rpc: Rpc, options: RegistryOptions) {
    this.#rpc = rpc;
    this.#options = options;
    this.address = options.address;
  }

  async statusOf(name: string): Promise<TopicStatus> {
    const topic = decodeFunctionResult({
      abi: topicRegistryAbi,
      functionName: "topicOf",
      data: await this.#call(encodeFunctionData({ abi: topicRegistryAbi, functionName: "topicOf", args: [name] })),
    });
    if (topic === zeroAddress) return "never-opened";
    const state = decodeFunctionResult({
      abi: topicRegistryAbi,
      functionName: "stateOf",
      data: await this.#call(encodeFunctionData({ abi: topicRegistryAbi, functionName: "stateOf", args: [topic] })),
    });
    return state.closed ? "closed" : "open";
  }

  async #call(data: Hex): Promise<Hex> {
    const { from, onMissing } = this.#options;
    const answer = await this.#rpc.call({ from, to: this.address, data });
    if (answer === "0x") throw onMissing();
    return answer;
  }
}

export function openCalldata(names: readonly string[], writers = everyone): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "open", args: [names, writers] }));
}

export function closeCalldata(name: string): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "close", args: [name] }));
}
