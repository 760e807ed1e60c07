import { everyone, topicRegistryAbi, writerOwnersSlot } from "@stele/contracts";
import { fromHex, type Hex, keccak256, toHex, toQuantity } from "@stele/eth/node";
import { topicAddress } from "@stele/wire";
import { decodeFunctionResult, encodeFunctionData } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";
import type { TopicWriters } from "../../../ports/topic-writers.ts";
import type { Rpc } from "../endpoint/rpc.ts";

/** The status of a topic for the account that asks. `others-only`: this account may not write to the topic. */
export type TopicStatus = "never-opened" | "open" | "closed" | "others-only";

export interface RegistryOptions {
  readonly address: Address;
  readonly from: Address;
  /** The newest block that this broker, or another one with the same store, knows. */
  readonly newest: () => Promise<number>;
  /** The error if there is no code at the address. */
  readonly onMissing: () => Error;
}

/** The block whose state a view reads. */
type Tag = number | "latest";

/** The storage slot at which the owners of sets begin, in the order of their numbers. */
const ownersStart = BigInt(toHex(keccak256(fromHex(`0x${writerOwnersSlot.toString(16).padStart(64, "0")}`))));

/**
 * The registry's views, as its `from` account sees them. Each throws RpcFailure, or the error of `onMissing` if there is no code. After a "no", asks again and
 * names the newest known block: a chain node that lags then refuses, instead of answering from an older block. If the chain node is ahead of this broker, the
 * second answer is older than the first.
 */
export class Registry {
  readonly address: Address;
  readonly #rpc: Rpc;
  readonly #options: RegistryOptions;

  constructor(rpc: Rpc, options: RegistryOptions) {
    this.#rpc = rpc;
    this.#options = options;
    this.address = options.address;
  }

  /** Checks that the registry is there. */
  async look(): Promise<void> {
    await this.#call(encodeFunctionData({ abi: topicRegistryAbi, functionName: "topicCount" }));
  }

  async statusOf(name: string): Promise<TopicStatus> {
    const { from } = this.#options;
    const topic = this.addressOf(name);
    const { closed, createdAt } = await this.#stateOf(topic);
    if (createdAt === 0n) return "never-opened";
    if (closed) return "closed";
    const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "isWriter", args: [topic, from] });
    return (await this.#isTrue(data)) ? "open" : "others-only";
  }

  /** Who may write to a topic; undefined if it was never opened. */
  async findWriters(name: string): Promise<TopicWriters | undefined> {
    const { createdAt, writers: number } = await this.#stateOf(this.addressOf(name));
    if (createdAt === 0n) return undefined;
    if (number === everyone) return { kind: "everyone" };
    const { from } = this.#options;
    const owner = await this.ownerOf(number);
    return { kind: "set", number, owner, isOwn: owner === from || (await this.isMember(number, from)) };
  }

  async isMember(writers: number, account: Address): Promise<boolean> {
    const args = [writers, account] as const;
    return this.#isTrue(encodeFunctionData({ abi: topicRegistryAbi, functionName: "isMember", args }));
  }

  /** The account that created the set of this number; the zero address if there is no such set or no registry. */
  async ownerOf(writers: number): Promise<Address> {
    const slot = toQuantity(ownersStart + BigInt(writers));
    const word = (tag: Tag): Promise<Hex> => this.#rpc.storage(this.address, slot, tag);
    const owner = await this.#askAgainIfNo(word, isNonzero);
    return `0x${owner.slice(2).padStart(40, "0").slice(-40)}`;
  }

  /** The address of the topic of this name, even if nobody opened it. */
  addressOf(name: string): Address {
    return toHex(topicAddress({ registry: fromHex(this.address), name }, keccak256));
  }

  async #stateOf(topic: Address) {
    const ask = { abi: topicRegistryAbi, functionName: "stateOf" } as const;
    const data = encodeFunctionData({ ...ask, args: [topic] });
    const state = async (tag: Tag) => decodeFunctionResult({ ...ask, data: await this.#call(data, tag) });
    return this.#askAgainIfNo(state, ({ createdAt, closed }) => createdAt !== 0n && !closed);
  }

  async #isTrue(data: Hex): Promise<boolean> {
    return isNonzero(await this.#askAgainIfNo((tag) => this.#call(data, tag), isNonzero));
  }

  async #askAgainIfNo<T>(ask: (tag: Tag) => Promise<T>, isYes: (answer: T) => boolean): Promise<T> {
    const answer = await ask("latest");
    return isYes(answer) ? answer : ask(await this.#options.newest());
  }

  /** Calls the registry in the state of the block `tag`. */
  async #call(data: Hex, tag: Tag = "latest"): Promise<Hex> {
    const { from, onMissing } = this.#options;
    const answer = await this.#rpc.call({ from, to: this.address, data }, tag);
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

export function createWritersCalldata(accounts: readonly Address[]): Buffer {
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "createWriters", args: [accounts] }));
}

export function addWriterCalldata(writers: number, account: Address): Buffer {
  const args = [writers, account, true] as const;
  return fromHex(encodeFunctionData({ abi: topicRegistryAbi, functionName: "setWriter", args }));
}

function isNonzero(word: Hex): boolean {
  return !/^0x0*$/.test(word);
}
