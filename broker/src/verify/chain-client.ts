import { topicAbi } from "@stele/contracts";
import { setTimeout as pause } from "node:timers/promises";
import { toQuantity } from "@stele/eth/node";
import { decodeFunctionResult, encodeFunctionData } from "viem/utils";
import type { BlockRange } from "../domain/block-range.ts";
import { blockNumberMax } from "../domain/position.ts";
import type { Address, Hash } from "../domain/topic.ts";
import { EndpointAddress } from "../ledger/evm/endpoint/address.ts";
import { inOrder, isLogList, type RpcLog } from "../ledger/evm/endpoint/rpc-log.ts";
import { isRevert, RpcFailure, toRpcFailure } from "../ledger/evm/endpoint/rpc-failure.ts";
import { publishedSignature } from "../ledger/evm/read/parse-log.ts";
import { askJson, type HttpRequest } from "./http.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** Identifies a chain. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: string;
}

export interface ChainOptions {
  readonly rpc: string | undefined;
  readonly operators: string;
  readonly key: (() => string) | undefined;
}

/** How often a node is asked while it is busy. */
const busyAttemptsMax = 3;
const busyPauseMs = 1_000;

const noChainAdvice =
  "; pass --rpc of a node of the group's chain, or --admin-url if the broker of an embedded chain has a port for operators";

/** The trusted node. @throws Unverifiable if it does not answer, RpcFailure if it refuses. */
export class ChainClient {
  /** The node's address, without parts that may be keys: reports and messages show it. */
  readonly url: string;
  /** Name of the node, for people. */
  readonly name: string;
  /** The end of some error messages if no `rpc` was given: perhaps the broker does not serve the group's chain itself. */
  readonly #advice: string;

  readonly #target: Pick<HttpRequest, "url" | "key" | "headers">;

  /** Without `rpc`, asks the broker's own view of its chain, with the broker's key. */
  constructor({ rpc, operators, key }: ChainOptions) {
    const own = rpc === undefined ? undefined : new EndpointAddress(rpc);
    this.url = own?.name ?? `${operators}/chain`;
    this.#target = own === undefined ? { url: this.url, key } : { url: withoutUser(own.text), headers: own.headers };
    this.name = own === undefined ? `the broker's embedded chain at ${this.url}` : `the node at ${this.url}`;
    this.#advice = rpc === undefined ? noChainAdvice : "";
  }

  async chainId(): Promise<number> {
    return this.#askForNumber("eth_chainId");
  }

  /** @throws Unverifiable if it is larger than any block of a group: a search up to it would not end. */
  async blockNumber(): Promise<number> {
    const number = await this.#askForNumber("eth_blockNumber");
    if (number <= blockNumberMax) return number;
    throw new Unverifiable(
      `${this.name} claims block ${number}, but no group has a block beyond ${blockNumberMax}; ask another node`,
    );
  }

  /** The chain that the node serves. */
  async identity(): Promise<ChainIdentity> {
    const [chainId, genesisHash] = await Promise.all([this.chainId(), this.blockHash(0)]);
    return { chainId, genesisHash };
  }

  /** @throws Unverifiable if the node does not have the block. */
  async blockHash(number: number): Promise<Hash> {
    const block = await this.#ask("eth_getBlockByNumber", toQuantity(number), false);
    const hash = typeof block === "object" && block !== null && "hash" in block ? block.hash : undefined;
    if (isHash(hash)) return hash;
    throw new Unverifiable(`${this.name} does not have block ${number}${this.#advice}`);
  }

  /** The topic contract's state; undefined if there is no such contract. @throws RpcFailure if the node did not run the call, for example if it is busy. */
  async findTopic(address: Address): Promise<{ readonly registry: Address; readonly sequence: number } | undefined> {
    try {
      const [registry, sequence] = await Promise.all([
        this.#view(address, "registry"),
        this.#view(address, "sequence"),
      ]);
      return {
        registry: decodeFunctionResult({
          abi: topicAbi,
          functionName: "registry",
          data: registry,
        }).toLowerCase() as Address, // An address in lower case.
        sequence: Number(decodeFunctionResult({ abi: topicAbi, functionName: "sequence", data: sequence })),
      };
    } catch (error) {
      if (error instanceof Unverifiable || (error instanceof RpcFailure && !isRevert(error))) throw error;
      return undefined;
    }
  }

  /** The logs of a topic's batches in these blocks, both ends included, in the order of the chain. */
  async logs(
    { registry, address }: { readonly registry: Address; readonly address: Address },
    range: BlockRange,
  ): Promise<readonly RpcLog[]> {
    const filter = {
      address: registry,
      fromBlock: toQuantity(range.from),
      toBlock: toQuantity(range.to),
      topics: [publishedSignature, `0x${address.slice(2).padStart(64, "0")}`],
    };
    const logs = await this.#ask("eth_getLogs", filter);
    if (!isLogList(logs)) throw new Unverifiable(`${this.name} does not return a list of logs`);
    return inOrder(logs);
  }

  async #view(address: Address, functionName: "registry" | "sequence"): Promise<`0x${string}`> {
    const data = encodeFunctionData({ abi: topicAbi, functionName });
    return (await this.#ask("eth_call", { to: address, data }, "latest")) as `0x${string}`; // Bytes; decoding checks them.
  }

  async #askForNumber(method: string): Promise<number> {
    const answer = await this.#ask(method);
    const value = typeof answer === "string" && /^0x[0-9a-f]+$/i.test(answer) ? Number(answer) : Number.NaN;
    if (Number.isSafeInteger(value)) return value;
    throw new Unverifiable(`${this.name} does not answer like a node${this.#advice}`);
  }

  async #ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#askOnce(method, params);
      } catch (error) {
        const isBusy = error instanceof RpcFailure && error.kind === "unreached";
        if (!isBusy || attempt === busyAttemptsMax) throw error;
        await pause(busyPauseMs);
      }
    }
  }

  async #askOnce(method: string, params: readonly unknown[]): Promise<unknown> {
    const body = { jsonrpc: "2.0", id: 1, method, params };
    const answer = await askJson({ ...this.#target, body, name: this.name });
    if (typeof answer === "object" && answer !== null) {
      if ("result" in answer) return answer.result;
      if ("error" in answer) throw toRpcFailure(answer.error);
    }
    throw new Unverifiable(`${this.name} does not answer like a node${this.#advice}`);
  }
}

/** The address without user and password: `fetch` refuses a URL with them, and quotes it. */
function withoutUser(address: string): string {
  const { origin, pathname, search } = new URL(address);
  return `${origin}${pathname}${search}`;
}

function isHash(value: unknown): value is Hash {
  return typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
}

/** Whether the range of blocks was too large, for the node or for us. */
export function isRangeRefused(error: unknown): boolean {
  return error instanceof AnswerTooLong || (error instanceof RpcFailure && error.kind === "range-refused");
}
