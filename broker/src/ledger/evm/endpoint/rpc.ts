import { type Hex, toHex, toQuantity } from "@stele/eth/node";
import type { Address, Hash } from "../../../domain/topic.ts";
import type { CheckedPlaces, CheckedState, DamagedBlock, StatePlace } from "../../../ports/chain-check.ts";
import type { Outage } from "../../../ports/ledger.ts";
import type { PushedBlock } from "../read/pushed-block.ts";
import { isUnanswered, RpcFailure, toRpcFailure } from "./rpc-failure.ts";

export interface RpcRequest {
  readonly method: string;
  readonly params?: readonly unknown[];
}

/** A transaction that the store knows without the chain. */
export interface KnownTransaction {
  readonly hash: Uint8Array;
  /** Its calldata. */
  readonly data: Uint8Array;
  /** Parts of the calldata that its logs repeat. */
  readonly logged: readonly Uint8Array[];
}

interface BlockSpan {
  readonly from: number;
  readonly to: number;
}

/** An EIP-1193 provider: the embedded chain, or `request` of any viem transport. */
export interface EvmProvider {
  request(args: RpcRequest): Promise<unknown>;
  /**
   * Sends several requests in order to one node that has the block `height`, never to different nodes. Fails if one of them fails. Undefined if there
   * is only one node.
   */
  requestAll?(calls: readonly RpcRequest[], height: number): Promise<readonly unknown[]>;
  /** Where the provider can notify, `message` carries the notifications of subscriptions. */
  on?(event: "message", listener: (message: unknown) => void): unknown;
  removeListener?(event: "message", listener: (message: unknown) => void): unknown;
  /** Whether an endpoint sends the notifications of subscriptions. While it is false, the newest block must be polled. */
  isNotifying?(): boolean;
  /** Takes a signed transaction as bytes, and fails as `eth_sendRawTransaction` does. Only a chain in this process has it. */
  submit?(raw: Uint8Array): Promise<void>;
  /**
   * Hands over each block from the next one on, in order and without a gap, once it can no longer change. Answers what ends that. Only a chain
   * in this process has it.
   */
  follow?(follower: (block: PushedBlock) => void): () => void;
  /**
   * Blocks from the first on, at least that one, as `follow` hands them over, each held against its hashes. Those that whoever asks can do
   * without are spare: damage in them is no reason to end. Only a chain in this process has it.
   */
  readBlocks?(range: BlockSpan & { readonly isSpare?: boolean }): Promise<readonly PushedBlock[]>;
  /** Which blocks of a range are not what their hashes say, up to the last that it looked at. Only a chain in this process has it. */
  checkBlocks?(range: BlockSpan): Promise<{ readonly upTo: number; readonly damaged: readonly DamagedBlock[] }>;
  /** Which nodes of the newest state are not what their hashes say, from a place on. Only a chain in this process has it. */
  checkState?(from: StatePlace | undefined): Promise<CheckedState>;
  /** See the port ChainCheck. Only a chain in this process has it. */
  checkPlaces?(isFirst: boolean): Promise<CheckedPlaces>;
  /** Makes a damaged block anew from what is known of its transactions, where it fits its hashes then. Only a chain in this process has it. */
  mendBlock?(number: number, transactions: readonly KnownTransaction[]): Promise<boolean>;
  /** Why no request can be served for now, as far as is known without asking; undefined while one can. Shows no secret. */
  failure?(): Outage | undefined;
  /** Names the chain to be served; from then on nothing of another one is answered. */
  expectChain?(chain: ChainIdentity): void;
}

/** Which chain an endpoint serves. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: Hash;
}

/** What we use of a block. */
export interface Header {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
  /** Undefined on chains without EIP-1559. */
  readonly baseFeePerGas: bigint | undefined;
  /** Undefined where the endpoint gives none. */
  readonly logsBloom: Hex | undefined;
  readonly transactionsRoot: Hex | undefined;
  /** Gas of all transactions in it, at most. */
  readonly gasLimit: number;
}

/** Which logs: of this contract, under one of these first topics. */
export interface LogFilter {
  readonly address: Address;
  readonly signatures: readonly Hex[];
  /** Only those whose third topic is this account: in refusals, the one that called the registry. */
  readonly sender?: Address;
}

/** A log as the endpoint gives it. */
export interface RpcLog {
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly blockNumber: Hex;
  readonly blockHash: Hash;
  readonly transactionHash: Hash;
  readonly logIndex: Hex;
}

export interface Receipt {
  readonly blockHash: Hash;
  readonly blockNumber: number;
  readonly succeeded: boolean;
  readonly gasUsed: number;
  readonly logs: readonly RpcLog[];
  readonly contractAddress: Address | undefined;
}

export interface CallRequest {
  readonly from: Address;
  readonly to?: Address;
  readonly data: Hex;
}

/** The requests that the ledger makes, with their answers read. @throws RpcFailure, and nothing else. */
export class Rpc {
  readonly provider: EvmProvider;

  constructor(provider: EvmProvider) {
    this.provider = provider;
  }

  async chainId(): Promise<number> {
    return Number(await this.#ask<Hex>("eth_chainId"));
  }

  /** @throws RpcFailure when there is no such block. */
  async header(tag: number | "latest"): Promise<Header> {
    const block = await this.#ask<unknown>("eth_getBlockByNumber", toTag(tag), false);
    return readHeader(block);
  }

  /** Undefined when there is no such block, or none yet. */
  async findHeader(tag: number | "safe" | "finalized"): Promise<Header | undefined> {
    const block = await this.#ask<unknown>("eth_getBlockByNumber", toTag(tag), false);
    return block === null ? undefined : readHeader(block);
  }

  /** Logs of one block. An endpoint that does not have it refuses. */
  async logsOf(blockHash: Hash, filter: LogFilter): Promise<readonly RpcLog[]> {
    return this.#ask<readonly RpcLog[]>("eth_getLogs", { blockHash, ...toParameters(filter) });
  }

  /**
   * Logs of a range with the header of its end, from one node: one that has not got the end would give fewer logs than there are. The header
   * is undefined where there is but one node to ask. @throws RpcFailure when the node has not got the end.
   */
  async logs(
    range: { readonly from: number; readonly to: number },
    filter: LogFilter,
  ): Promise<{ readonly logs: readonly RpcLog[]; readonly end: Header | undefined }> {
    const params = { fromBlock: toQuantity(range.from), toBlock: toQuantity(range.to), ...toParameters(filter) };
    if (this.provider.requestAll === undefined) {
      return { logs: await this.#ask<readonly RpcLog[]>("eth_getLogs", params), end: undefined };
    }
    // The header comes first: a node that gets the end in between would have it after logs that it gave without it.
    const calls = [
      { method: "eth_getBlockByNumber", params: [toQuantity(range.to), false] },
      { method: "eth_getLogs", params: [params] },
    ];
    const [block, logs] = await this.#askAll(calls, range.to);
    const end = readHeader(block);
    if (end.number === range.to) return { logs: logs as readonly RpcLog[], end }; // What the method answers by its specification.
    throw new RpcFailure("refused", "the endpoint answered another block", { cause: block });
  }

  /** Blocks with all their logs; undefined where the provider hands none over. */
  async findBlocks(range: BlockSpan & { readonly isSpare?: boolean }): Promise<readonly PushedBlock[] | undefined> {
    try {
      return await this.provider.readBlocks?.(range);
    } catch (error) {
      throw toRpcFailure(error);
    }
  }

  async receipt(hash: Hash): Promise<Receipt | undefined> {
    const receipt = await this.#ask<RawReceipt | null>("eth_getTransactionReceipt", hash);
    if (receipt === null) return undefined;
    return {
      blockHash: receipt.blockHash,
      blockNumber: Number(receipt.blockNumber),
      succeeded: receipt.status === "0x1",
      gasUsed: Number(receipt.gasUsed),
      logs: receipt.logs,
      contractAddress: receipt.contractAddress ?? undefined,
    };
  }

  /** Whether the endpoint knows a transaction, included or waiting. */
  async knows(hash: Hash): Promise<boolean> {
    return (await this.#ask<unknown>("eth_getTransactionByHash", hash)) !== null;
  }

  async call(request: CallRequest, tag: number | "latest" = "latest"): Promise<Hex> {
    return this.#ask<Hex>("eth_call", request, toTag(tag));
  }

  async code(address: Address, tag: number | "latest" = "latest"): Promise<Hex> {
    return this.#ask<Hex>("eth_getCode", address, toTag(tag));
  }

  /** One word of an account's storage. */
  async storage(address: Address, slot: Hex): Promise<Hex> {
    return this.#ask<Hex>("eth_getStorageAt", address, slot, "latest");
  }

  /** In wei. */
  async balance(address: Address): Promise<bigint> {
    return BigInt(await this.#ask<Hex>("eth_getBalance", address, "latest"));
  }

  async transactionCount(address: Address, tag: number | "latest" | "pending"): Promise<number> {
    return Number(await this.#ask<Hex>("eth_getTransactionCount", address, toTag(tag)));
  }

  /** The transaction in this block that used the sender's nonce; undefined when it is not there. */
  async findTransaction(
    blockNumber: number,
    { sender, nonce }: { readonly sender: Address; readonly nonce: number },
  ): Promise<Hash | undefined> {
    const block = await this.#ask<RawFullBlock | null>("eth_getBlockByNumber", toQuantity(blockNumber), true);
    const isWanted = (one: RawTransaction): boolean =>
      one.from.toLowerCase() === sender.toLowerCase() && Number(one.nonce) === nonce;
    return block?.transactions.find(isWanted)?.hash;
  }

  async estimateGas(request: CallRequest): Promise<number> {
    return Number(await this.#ask<Hex>("eth_estimateGas", request));
  }

  async gasPrice(): Promise<bigint> {
    return BigInt(await this.#ask<Hex>("eth_gasPrice"));
  }

  /** What the endpoint advises as a tip; undefined where it has no such method. */
  async tip(): Promise<bigint | undefined> {
    try {
      return BigInt(await this.#ask<Hex>("eth_maxPriorityFeePerGas"));
    } catch (error) {
      if (error instanceof RpcFailure && !isUnanswered(error)) return undefined;
      throw error;
    }
  }

  async sendRaw(raw: Uint8Array): Promise<void> {
    const { provider } = this;
    if (provider.submit === undefined) await this.#ask<Hex>("eth_sendRawTransaction", toHex(raw));
    else await provider.submit(raw).catch(rethrow);
  }

  async subscribeHeads(): Promise<unknown> {
    return this.#ask<unknown>("eth_subscribe", "newHeads");
  }

  async unsubscribe(id: unknown): Promise<void> {
    await this.#ask<unknown>("eth_unsubscribe", id);
  }

  async #askAll(calls: readonly RpcRequest[], height: number): Promise<readonly unknown[]> {
    try {
      return (await this.provider.requestAll?.(calls, height)) ?? [];
    } catch (error) {
      throw toRpcFailure(error);
    }
  }

  async #ask<T>(method: string, ...params: readonly unknown[]): Promise<T> {
    try {
      return (await this.provider.request({ method, params })) as T; // What the method answers by its specification.
    } catch (error) {
      throw toRpcFailure(error);
    }
  }
}

function rethrow(error: unknown): never {
  throw toRpcFailure(error);
}

interface RawReceipt {
  readonly blockHash: Hash;
  readonly blockNumber: Hex;
  readonly status: Hex;
  readonly gasUsed: Hex;
  readonly logs: readonly RpcLog[];
  readonly contractAddress: Address | null;
}

interface RawTransaction {
  readonly hash: Hash;
  readonly from: Address;
  readonly nonce: Hex;
}

interface RawFullBlock {
  readonly transactions: readonly RawTransaction[];
}

/** Reads a block or a new head. @throws RpcFailure when it is none. */
export function readHeader(value: unknown): Header {
  const block = (value ?? {}) as Readonly<Record<string, unknown>>; // Any object; what is used of it is checked.
  const { number, hash, parentHash, timestamp, baseFeePerGas, gasLimit, logsBloom, transactionsRoot } = block;
  if (!isHex(number) || !isHex(hash) || !isHex(parentHash) || !isHex(timestamp) || !isHex(gasLimit)) {
    throw new RpcFailure("refused", "the endpoint answered no block", { cause: value });
  }
  return {
    number: Number(number),
    hash,
    parentHash,
    timestamp: Number(timestamp) * 1000,
    baseFeePerGas: isHex(baseFeePerGas) ? BigInt(baseFeePerGas) : undefined,
    gasLimit: Number(gasLimit),
    logsBloom: isHex(logsBloom) ? logsBloom : undefined,
    transactionsRoot: isHex(transactionsRoot) ? transactionsRoot : undefined,
  };
}

function toParameters({ address, signatures, sender }: LogFilter): {
  readonly address: Address;
  readonly topics: unknown;
} {
  const topics = sender === undefined ? [signatures] : [signatures, null, `0x${sender.slice(2).padStart(64, "0")}`];
  return { address, topics };
}

function toTag<Tag extends string>(tag: number | Tag): Hex | Tag {
  return typeof tag === "number" ? toQuantity(tag) : tag;
}

function isHex(value: unknown): value is Hex {
  return typeof value === "string" && value.startsWith("0x");
}
