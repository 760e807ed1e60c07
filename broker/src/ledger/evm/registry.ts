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
  readonly #onMissing: () => Error;

  /** `onMissing` answers what is thrown when there is no code at the address. */
  constructor(
    rpc: Rpc,
    options: { readonly address: Address; readonly from: Address; readonly onMissing: () => Error },
  ) {
    this.#onMissing = options.onMissing;
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

  /** Whether it is one, as a node says that has the block. */
  async isTopic(address: Topic["address"], blockNumber: number): Promise<boolean> {
    const request = { from: this.#from, to: this.address, data: stateCalldata(address) };
    const answer = await this.#rpc.callHaving(blockNumber, request);
    if (answer === "0x") throw this.#onMissing();
    return decodeState(answer).topic !== zeroAddress;
  }

  /** Whether it was one after a block; an endpoint that has not got that block refuses to answer. Before the registry, nothing was. */
  async wasTopic(address: Topic["address"], blockNumber: number): Promise<boolean> {
    const answer = await this.#call(stateCalldata(address), blockNumber);
    return answer !== "0x" && decodeState(answer).topic !== zeroAddress;
  }

  async #stateOf(address: Address): Promise<TopicState> {
    return decodeState(await this.#call(stateCalldata(address)));
  }

  async #call(data: `0x${string}`, blockNumber?: number): Promise<`0x${string}`> {
    const answer = await this.#rpc.call({ from: this.#from, to: this.address, data }, blockNumber);
    if (answer === "0x" && blockNumber === undefined) throw this.#onMissing();
    return answer;
  }
}

interface TopicState {
  readonly topic: Address;
  readonly closed: boolean;
}

function stateCalldata(address: Address): `0x${string}` {
  return encodeFunctionData({ abi: topicRegistryAbi, functionName: "stateOf", args: [address] });
}

function decodeState(data: `0x${string}`): TopicState {
  return decodeFunctionResult({ abi: topicRegistryAbi, functionName: "stateOf", data });
}

export function openCalldata(name: string): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "open", args: [name] }));
}

export function closeCalldata(name: string): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "close", args: [name] }));
}
