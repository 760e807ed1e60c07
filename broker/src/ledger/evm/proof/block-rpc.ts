import { toQuantity } from "@stele/eth/node";
import type { Hash } from "../../../domain/topic.ts";
import { chunksOf } from "../../../lib/chunks.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import { ReceiptsTooLong } from "../../../ports/chain-proof.ts";
import { EndpointError } from "../endpoint/endpoint-error.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";
import type { RpcLog } from "../endpoint/rpc-log.ts";
import { isUnanswered, RpcFailure, toRpcFailure } from "../endpoint/rpc-failure.ts";
import type { RpcObject } from "./header-rlp.ts";

/** A receipt; only its logs are declared here. */
export type RpcReceipt = RpcObject & { readonly logs: readonly RpcLog[] };

/** A block with the hashes of its transactions. */
export type RpcBlock = RpcObject & { readonly transactions: readonly Hash[] };

/** Upper bound on concurrent requests for single receipts of a block. */
const receiptsUnderWayMax = 16;
/** Upper bound on the receipts of a block that is proven, in bytes of JSON; a stranger can make them as long as the block's gas allows. */
export const receiptsBytesMax = 16_777_216;
/** JSON of a log without its data, in bytes. */
const logBytes = 600;

/** Reads whole blocks from an endpoint. Each method throws RpcFailure if a request fails. */
export class BlockRpc {
  readonly #provider: EvmProvider;
  readonly #signal: AbortSignal;

  /** Every request ends when `signal` aborts. */
  constructor(provider: EvmProvider, signal: AbortSignal) {
    this.#provider = provider;
    this.#signal = signal;
  }

  async findBlock(number: number): Promise<RpcBlock | undefined> {
    const block = await this.#ask("eth_getBlockByNumber", toQuantity(number), false);
    return isObject(block) && Array.isArray(block["transactions"]) ? (block as RpcBlock) : undefined; // Just checked.
  }

  /**
   * The receipts of a block in the order of its transactions; undefined if the endpoint lacks some.
   * @throws ReceiptsTooLong, and RpcFailure.
   */
  async findReceipts(block: RpcBlock): Promise<readonly RpcReceipt[] | undefined> {
    const receipts = (await this.#receiptsAtOnce(block)) ?? (await this.#receiptsOneByOne(block.transactions));
    assertSize(receipts);
    return receipts.length === block.transactions.length && receipts.every(isReceipt) ? receipts : undefined;
  }

  /** All receipts by one request; undefined if the endpoint refuses the request or lacks its method, or returns another number of receipts. */
  async #receiptsAtOnce(block: RpcBlock): Promise<readonly unknown[] | undefined> {
    try {
      const receipts = await this.#ask("eth_getBlockReceipts", block["number"]);
      return Array.isArray(receipts) && receipts.length === block.transactions.length ? receipts : undefined;
    } catch (error) {
      if (isTooLong(error)) throw new ReceiptsTooLong(receiptsBytesMax);
      if (error instanceof RpcFailure && isUnanswered(error)) throw error;
      return undefined;
    }
  }

  async #receiptsOneByOne(hashes: readonly Hash[]): Promise<readonly unknown[]> {
    const receipts: unknown[] = [];
    for (const some of chunksOf(hashes, receiptsUnderWayMax)) {
      receipts.push(...(await Promise.all(some.map((hash) => this.#receipt(hash)))));
      assertSize(receipts);
    }
    return receipts;
  }

  async #receipt(hash: Hash): Promise<unknown> {
    try {
      return await this.#ask("eth_getTransactionReceipt", hash);
    } catch (error) {
      throw isTooLong(error) ? new ReceiptsTooLong(receiptsBytesMax) : error;
    }
  }

  /** Asks for something that the chain has: if an endpoint does not, it may have deleted it. */
  async #ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    try {
      const answer = this.#provider.request({ method, params, isPromised: true }).then((result) => ({ result }));
      const given = await untilAborted(answer, this.#signal);
      if (given === undefined) throw new RpcFailure("connection", "no answer in time", { cause: undefined });
      return given.result;
    } catch (error) {
      throw toRpcFailure(error);
    }
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof RpcFailure && error.cause instanceof EndpointError && error.cause.reach === "answer-too-long";
}

/** @throws ReceiptsTooLong. */
function assertSize(receipts: readonly unknown[]): void {
  let bytes = 0;
  for (const receipt of receipts) {
    if (!isReceipt(receipt)) continue;
    for (const log of receipt.logs) bytes += logBytes + dataLengthOf(log);
  }
  if (bytes > receiptsBytesMax) throw new ReceiptsTooLong(receiptsBytesMax);
}

/** 0 for a malformed log, which makes no proof. */
function dataLengthOf(log: unknown): number {
  return isObject(log) && typeof log["data"] === "string" ? log["data"].length : 0;
}

function isReceipt(value: unknown): value is RpcReceipt {
  return isObject(value) && Array.isArray(value["logs"]);
}

function isObject(value: unknown): value is RpcObject {
  return typeof value === "object" && value !== null;
}
