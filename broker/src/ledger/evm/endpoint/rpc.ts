import { type Hex, toHex, toQuantity } from "@stele/eth/node";
import type { BlockRange } from "../../../domain/block-range.ts";
import type { Address, Hash } from "../../../domain/topic.ts";
import type { CheckedIndexEntries, CheckedState, DamagedBlock, StatePlace } from "../../../ports/chain-check.ts";
import type { BatchStart, BlockRef, Outage } from "../../../ports/ledger.ts";
import type { PushedBlock } from "../read/pushed-block.ts";
import { findCount } from "./answer.ts";
import type { RpcCall } from "./connection.ts";
import { isUnanswered, RpcFailure, toFailureOf, toRpcFailure } from "./rpc-failure.ts";
import { inOrder, isHex, isLogList, isQuantity, type RpcLog } from "./rpc-log.ts";

/** A transaction rebuilt from the index. */
export interface KnownTransaction {
  readonly hash: Uint8Array;
  readonly data: Uint8Array;
  /** Parts of the calldata that also occur in its logs. */
  readonly logged: readonly Uint8Array[];
}

/** An EIP-1193 provider: the embedded chain, or a set of endpoints. */
export interface EvmProvider {
  request(args: RpcCall): Promise<unknown>;
  /**
   * Sends several requests in order to one chain node that has the block `height`. Fails if one of them fails or returns null. Undefined if there is only one
   * chain node.
   */
  requestAll?(calls: readonly RpcCall[], height: number): Promise<readonly unknown[]>;
  /**
   * Calls `listener` with each new head that the provider announces, not parsed. Returns a function that ends the calls and never rejects. One subscriber at
   * a time: end its calls before the next one begins. Undefined if the provider cannot notify.
   */
  subscribeHeads?(listener: (head: unknown) => void): Promise<() => Promise<void>>;
  /** Whether an endpoint announces heads to the subscriber. While the result is false, the newest block must be polled. */
  isNotifying?(): boolean;
  /** Like `eth_sendRawTransaction`, but takes bytes. Only the embedded chain has this method. */
  submit?(raw: Uint8Array): Promise<void>;
  /**
   * Calls `follower` with each block from the next one on, in order and without gaps, once the block is durable. Returns a function that ends the calls. Only
   * the embedded chain has this method: a chain that has it never has reorgs, so its blocks are final.
   */
  follow?(follower: (block: PushedBlock) => void): () => void;
  /**
   * Returns blocks from `from` on, at least one, in the format of `follow`, each verified against its hashes. `isOptional` means that the caller can
   * do without the blocks: then the chain does not report damage. Only the embedded chain has this method.
   */
  readBlocks?(range: BlockRange & { readonly isOptional?: boolean }): Promise<readonly PushedBlock[]>;
  /** Verifies the blocks of a range, up to `upTo`, against their hashes. Only the embedded chain has this method. */
  checkBlocks?(range: BlockRange): Promise<{ readonly upTo: number; readonly damaged: readonly DamagedBlock[] }>;
  /** Verifies nodes of the newest state's trie against their hashes, from a place on. Only the embedded chain has this method. */
  checkState?(from: StatePlace | undefined): Promise<CheckedState>;
  /** See the port ChainCheck. Only the embedded chain has this method. */
  checkIndexEntries?(isFirst: boolean): Promise<CheckedIndexEntries>;
  /** Repairs a block with these transactions; false, and no change, if the result would not match its hashes. Only the embedded chain has this method. */
  repairBlock?(number: number, transactions: readonly KnownTransaction[]): Promise<boolean>;
  /** Why no endpoint can serve a request, as far as known without asking; undefined while one can. Contains no secret. */
  failure?(): Outage | undefined;
  /** Sets the expected chain. Endpoints that serve another chain are not used from then on. */
  expectChain?(chain: ChainIdentity): void;
  /** Makes the next request to each endpoint check its chain first. Call it if an answer came from another chain. */
  doubtChain?(): void;
}

/** Whether the provider is the embedded chain, which never has reorgs. */
export function isEmbedded(provider: EvmProvider): boolean {
  return provider.follow !== undefined;
}

/** Which chain an endpoint serves. */
export interface ChainIdentity {
  readonly chainId: number;
  readonly genesisHash: Hash;
}

/** The fields of a block that we use. */
export interface Header {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
  /** Unix time in milliseconds. */
  readonly timestamp: number;
  /** Undefined on chains without EIP-1559. */
  readonly baseFeePerGas: bigint | undefined;
  /** Undefined if the endpoint omits it. */
  readonly logsBloom: Hex | undefined;
  readonly transactionsRoot: Hex | undefined;
  /** Upper bound on the gas of all transactions of the block. */
  readonly gasLimit: number;
}

/** Selects logs of one contract whose first log topic is one of `signatures`. */
export interface LogFilter {
  readonly address: Address;
  readonly signatures: readonly Hex[];
  /** Selects only logs whose third log topic is this account. In logs of rejections, that is the account that called the registry. */
  readonly sender?: Address;
  /** Selects only this batch, in logs of batches. */
  readonly batch?: BatchStart;
  /** Whether there should be such logs: while an endpoint returns none, the next one is asked. */
  readonly isPromised?: boolean | undefined;
}

export interface Receipt {
  readonly blockHash: Hash;
  readonly blockNumber: number;
  readonly succeeded: boolean;
  readonly gasUsed: number;
  readonly logs: readonly RpcLog[];
}

interface ReceiptOptions {
  readonly isPromised?: boolean | undefined;
  /** Whether the transaction may succeed without logs. Then a receipt without logs is taken, whatever its bloom. */
  readonly mayLackLogs?: boolean | undefined;
}

export interface CallRequest {
  readonly from: Address;
  readonly to?: Address;
  readonly data: Hex;
}

/** The ledger's requests, with parsed answers. Each method throws RpcFailure if its request fails. */
export class Rpc {
  readonly provider: EvmProvider;

  constructor(provider: EvmProvider) {
    this.provider = provider;
  }

  async chainId(): Promise<number> {
    return this.#request({ method: "eth_chainId" }, toCount);
  }

  /**
   * Call it only for a block that the chain has: an endpoint without the block may have deleted it, so the next one is asked. @throws RpcFailure if no endpoint
   * has it.
   */
  async header(tag: number | "latest"): Promise<Header> {
    const params = [toTag(tag), false];
    return this.#request({ method: "eth_getBlockByNumber", params, isPromised: true }, readHeader);
  }

  /** Undefined if there is no such block yet. An endpoint that has just started may not know its final block, so another one is asked for that. */
  async findHeader(tag: number | "safe" | "finalized"): Promise<Header | undefined> {
    const call = { method: "eth_getBlockByNumber", params: [toTag(tag), false], isPromised: typeof tag === "string" };
    return this.#request(call, (block) => (block === null ? undefined : readHeader(block)));
  }

  /** Logs of one block. @throws RpcFailure if the endpoint lacks the block. */
  async logsOf(blockHash: Hash, filter: LogFilter): Promise<readonly RpcLog[]> {
    return this.#request(toLogsCall({ blockHash }, filter), readLogs);
  }

  /**
   * Logs of a range and the header of its last block, from one chain node: one without that block would silently return too few logs. The header is
   * undefined if there is only one chain node. @throws RpcFailure if the chain node lacks the last block.
   */
  async logs(
    range: BlockRange,
    filter: LogFilter,
  ): Promise<{ readonly logs: readonly RpcLog[]; readonly end: Header | undefined }> {
    const call = toLogsCall({ fromBlock: toQuantity(range.from), toBlock: toQuantity(range.to) }, filter);
    const { provider } = this;
    if (provider.requestAll === undefined) return { logs: await this.#request(call, readLogs), end: undefined };
    // The header comes first: otherwise a chain node could return too few logs, then receive the last block, then return its header.
    const calls = [{ method: "eth_getBlockByNumber", params: [toQuantity(range.to), false] }, call];
    const [block, logs] = (await classified(async () => provider.requestAll?.(calls, range.to), "eth_getLogs")) ?? [];
    const end = await classified(async () => readHeader(block), "eth_getBlockByNumber");
    if (end.number === range.to) return { logs: await classified(async () => readLogs(logs), call.method), end };
    throw new RpcFailure("refused", "the endpoint returned another block", { cause: block });
  }

  /** Blocks with all their logs; undefined if the provider has no `readBlocks`. */
  async findBlocks(range: BlockRange & { readonly isOptional?: boolean }): Promise<readonly PushedBlock[] | undefined> {
    return classified(async () => this.provider.readBlocks?.(range));
  }

  /**
   * Undefined for a transaction that is in no block, as far as the endpoint knows. If `isPromised`, asks the endpoints in turn until one returns a receipt,
   * even a receipt without a block or without its logs.
   */
  async receipt(hash: Hash, { isPromised, mayLackLogs = false }: ReceiptOptions = {}): Promise<Receipt | undefined> {
    const call = { method: "eth_getTransactionReceipt", params: [hash], isPromised };
    return this.#request(call, (answer) => findReceipt(answer, mayLackLogs));
  }

  /**
   * Whether the endpoint knows a transaction, included or pending. If `isSent`, asks all endpoints: one may lag behind the one that the transaction was
   * sent to. Then it fails if an endpoint does not answer.
   */
  async knows(hash: Hash, { isSent = false } = {}): Promise<boolean> {
    const call = { method: "eth_getTransactionByHash", params: [hash], isPromised: isSent };
    return this.#request(call, (transaction) => transaction !== null);
  }

  /** The block that contains a transaction; undefined if there is none, as far as the endpoints know. Fails if an endpoint does not answer. */
  async findBlockOf(hash: Hash): Promise<BlockRef | undefined> {
    return this.#request({ method: "eth_getTransactionByHash", params: [hash], isPromised: true }, findPlace);
  }

  async call(request: CallRequest, tag: number | "latest" = "latest"): Promise<Hex> {
    return this.#ask<Hex>("eth_call", request, toTag(tag));
  }

  async code(address: Address, tag: number | "latest" = "latest"): Promise<Hex> {
    return this.#ask<Hex>("eth_getCode", address, toTag(tag));
  }

  async storage(address: Address, slot: Hex, tag: number | "latest"): Promise<Hex> {
    return this.#ask<Hex>("eth_getStorageAt", address, slot, toTag(tag));
  }

  /** In wei. */
  async balance(address: Address): Promise<bigint> {
    return this.#request({ method: "eth_getBalance", params: [address, "latest"] }, toAmount);
  }

  async transactionCount(address: Address, tag: number | "latest" | "pending"): Promise<number> {
    return this.#request({ method: "eth_getTransactionCount", params: [address, toTag(tag)] }, toCount);
  }

  /** The transaction in this block that used the sender's nonce, with the block's hash; undefined if there is none. */
  async findTransaction(
    blockNumber: number,
    { sender, nonce }: { readonly sender: Address; readonly nonce: number },
  ): Promise<{ readonly hash: Hash; readonly blockHash: Hash } | undefined> {
    const block = await this.#ask<RawFullBlock | null>("eth_getBlockByNumber", toQuantity(blockNumber), true);
    const isWanted = (one: RawTransaction): boolean =>
      one.from.toLowerCase() === sender.toLowerCase() && Number(one.nonce) === nonce;
    const found = block?.transactions.find(isWanted);
    return found === undefined || block === null ? undefined : { hash: found.hash, blockHash: block.hash };
  }

  async estimateGas(request: CallRequest): Promise<number> {
    return this.#request({ method: "eth_estimateGas", params: [request] }, toCount);
  }

  async gasPrice(): Promise<bigint> {
    return this.#request({ method: "eth_gasPrice" }, toAmount);
  }

  /** The tip that the endpoint suggests, in wei per gas. Undefined if the answer is an error or no number: some endpoints lack the method. */
  async tip(): Promise<bigint | undefined> {
    try {
      return await this.#request({ method: "eth_maxPriorityFeePerGas" }, toAmount);
    } catch (error) {
      if (error instanceof RpcFailure && !isUnanswered(error)) return undefined;
      throw error;
    }
  }

  async sendRaw(raw: Uint8Array): Promise<void> {
    const { provider } = this;
    const method = "eth_sendRawTransaction";
    const send = async (): Promise<unknown> =>
      provider.submit === undefined ? provider.request({ method, params: [toHex(raw)] }) : provider.submit(raw);
    await classified(send, method);
  }

  async #ask<T>(method: string, ...params: readonly unknown[]): Promise<T> {
    return this.#request({ method, params }, (answer) => answer as T); // The caller names the type that the method's specification gives.
  }

  async #request<T>(call: RpcCall, read: (answer: unknown) => T): Promise<T> {
    return classified(async () => read(await this.provider.request(call)), call.method);
  }
}

async function classified<T>(ask: () => Promise<T>, method?: string): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw method === undefined ? toRpcFailure(error) : toFailureOf(method, error);
  }
}

interface RawReceipt {
  readonly blockHash: Hash;
  /** Null in the receipts that some chain nodes return for pending transactions. */
  readonly blockNumber: Hex | null;
  readonly status: Hex;
  readonly gasUsed: Hex;
  readonly logs: readonly RpcLog[];
  readonly logsBloom?: unknown;
}

/**
 * Undefined for a transaction that is in no block. Also undefined if the transaction succeeded, must have logs, and its receipt lacks the logs that its bloom
 * promises: some chain nodes return a receipt before they have the logs of the block. Transactions that may lack logs are exempt, because some chain nodes
 * return the bloom of the whole block with every receipt.
 * @throws RpcFailure if the receipt lacks the block, the status or the list of logs, which a later one may have.
 */
function findReceipt(answer: unknown, mayLackLogs: boolean): Receipt | undefined {
  const raw = answer as RawReceipt | null; // The fields are checked below.
  if (raw === null || raw.blockNumber === null) return undefined;
  const { blockHash, blockNumber, status, gasUsed, logs, logsBloom } = raw;
  const isReceipt = isHex(blockHash) && isQuantity(blockNumber) && isQuantity(status) && Array.isArray(logs);
  if (!isReceipt) throw new RpcFailure("refused", "the endpoint returned no receipt", { cause: raw });
  const succeeded = Number(status) === 1;
  const areLogsMissing = logs.length === 0 && isHex(logsBloom) && !/^0x0*$/.test(logsBloom);
  if (succeeded && !mayLackLogs && areLogsMissing) return undefined;
  return {
    blockHash,
    blockNumber: Number(blockNumber),
    succeeded,
    gasUsed: Number(gasUsed),
    logs,
  };
}

interface RawTransaction {
  readonly hash: Hash;
  readonly from: Address;
  readonly nonce: Hex;
}

/** The block of a transaction; undefined for none, and for a pending transaction. */
function findPlace(answer: unknown): BlockRef | undefined {
  const { blockNumber, blockHash } = (answer ?? {}) as Readonly<Record<string, unknown>>; // The fields are checked below.
  const number = findCount(blockNumber);
  return number === undefined || !isHex(blockHash) ? undefined : { number, hash: blockHash };
}

interface RawFullBlock {
  readonly hash: Hash;
  readonly transactions: readonly RawTransaction[];
}

/** Parses a block or a new head. @throws RpcFailure if `value` is neither. */
export function readHeader(value: unknown): Header {
  const block = (value ?? {}) as Readonly<Record<string, unknown>>; // The fields are checked below.
  const { number, hash, parentHash, timestamp, baseFeePerGas, gasLimit, logsBloom, transactionsRoot } = block;
  if (!isQuantity(number) || !isHex(hash) || !isHex(parentHash) || !isQuantity(timestamp) || !isQuantity(gasLimit)) {
    throw new RpcFailure("refused", "the endpoint returned no block", { cause: value });
  }
  return {
    number: Number(number),
    hash,
    parentHash,
    timestamp: Number(timestamp) * 1000,
    baseFeePerGas: isQuantity(baseFeePerGas) ? BigInt(baseFeePerGas) : undefined,
    gasLimit: Number(gasLimit),
    logsBloom: isHex(logsBloom) ? logsBloom : undefined,
    transactionsRoot: isHex(transactionsRoot) ? transactionsRoot : undefined,
  };
}

/** @throws RpcFailure if `value` is not a list of logs. */
function readLogs(value: unknown): readonly RpcLog[] {
  if (isLogList(value)) return inOrder(value);
  throw new RpcFailure("refused", "the endpoint returned no list of logs", { cause: value });
}

/** @throws RpcFailure if `quantity` is not one. */
function toCount(quantity: unknown): number {
  const count = findCount(quantity);
  if (count === undefined) throw new RpcFailure("refused", "the endpoint returned no number", { cause: quantity });
  return count;
}

/** An amount in wei. @throws RpcFailure if `quantity` is not one. */
function toAmount(quantity: unknown): bigint {
  if (isQuantity(quantity)) return BigInt(quantity);
  throw new RpcFailure("refused", "the endpoint returned no amount", { cause: quantity });
}

function toLogsCall(blocks: object, filter: LogFilter): RpcCall {
  return { method: "eth_getLogs", params: [{ ...blocks, ...toParameters(filter) }], isPromised: filter.isPromised };
}

function toParameters({ address, signatures, sender, batch }: LogFilter): {
  readonly address: Address;
  readonly topics: unknown;
} {
  if (batch !== undefined)
    return { address, topics: [signatures, toWord(batch.address), toWord(toQuantity(batch.firstSequence))] };
  return { address, topics: sender === undefined ? [signatures] : [signatures, null, toWord(sender)] };
}

/** A number or an address as a log topic. */
function toWord(hex: Hex): Hex {
  return `0x${hex.slice(2).padStart(64, "0")}`;
}

function toTag<Tag extends string>(tag: number | Tag): Hex | Tag {
  return typeof tag === "number" ? toQuantity(tag) : tag;
}
