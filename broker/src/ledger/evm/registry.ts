import { topicRegistryAbi } from "@stele/contracts";
import { decodeFunctionResult, encodeFunctionData } from "viem";
import type { Address, Topic } from "../../domain/topic.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import { fromHex } from "./hex.ts";
import type { Rpc } from "./rpc.ts";

/** What the ledger asks the registry. */
export type TopicStatus = "never-opened" | "open" | "closed";

/** Topics in one page of the registry's list: with names of 1,024 bytes each it takes less gas than endpoints give a call. */
const topicsAtOnce = 100;
const zeroAddress: Address = `0x${"0".repeat(40)}`;

export interface RegistryOptions {
  readonly address: Address;
  readonly from: Address;
  /** Whether a block is so near the head that the chain may take it back. */
  readonly isNear: (block: BlockRef) => boolean;
  /** What is thrown when there is no code at the address. */
  readonly onMissing: () => Error;
}

/** The registry's views, and the calldata of what changes topics. */
export class Registry {
  readonly address: Address;
  readonly #rpc: Rpc;
  readonly #from: Address;
  readonly #onMissing: () => Error;
  readonly #isNear: RegistryOptions["isNear"];

  constructor(rpc: Rpc, options: RegistryOptions) {
    this.#onMissing = options.onMissing;
    this.#isNear = options.isNear;
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

  /** Whether it is one, as a node says that has the block; or was one then, which a node without the block refuses to answer. */
  async isTopic(address: Topic["address"], block: BlockRef): Promise<boolean> {
    const data = stateCalldata(address);
    const now = await this.#rpc.callHaving(block.number, { from: this.#from, to: this.address, data });
    if (now === "0x") throw this.#onMissing();
    if (decodeState(now).topic !== zeroAddress) return true;
    if (!this.#isNear(block)) return false;
    const then = await this.#call(data, block.number);
    // Before the registry, nothing was a topic.
    return then !== "0x" && decodeState(then).topic !== zeroAddress;
  }

  /** Pages of all topics with events: those of the newest state of a node whose chain has the block. @throws RpcFailure. */
  async *listTopics(block: BlockRef): AsyncGenerator<readonly Address[]> {
    let length = topicsAtOnce;
    for (let offset = 0n; length === topicsAtOnce; offset += BigInt(topicsAtOnce)) {
      const page = await this.#topics(block, offset);
      length = page.length;
      yield page.flatMap(({ topic, sequence }) => (sequence > 0n ? [toLowerCase(topic)] : []));
    }
  }

  async #topics(block: BlockRef, offset: bigint): Promise<readonly TopicState[]> {
    const call = { abi: topicRegistryAbi, functionName: "topics" } as const;
    const data = encodeFunctionData({ ...call, args: [offset, BigInt(topicsAtOnce)] });
    const answer = await this.#rpc.callOn(block, { from: this.#from, to: this.address, data });
    if (answer === "0x") throw this.#onMissing();
    return decodeFunctionResult({ ...call, data: answer });
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
  readonly sequence: bigint;
  readonly closed: boolean;
}

function toLowerCase(address: Address): Address {
  return address.toLowerCase() as Address; // An address in lower case is still one.
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
