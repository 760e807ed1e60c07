import { setImmediate as nextTurn } from "node:timers/promises";
import { toHex, toQuantity } from "@stele/eth/node";
import type { BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import type { IncludedTransaction } from "../chain/block-reader.ts";
import { CHECKED_BYTES_MAX } from "../limits.ts";
import { findBlock } from "./block-tag.ts";
import type { ReadContext, RpcMethods } from "./context.ts";
import { formatBlock, formatReceipt, formatTransaction } from "./format.ts";
import type { Params } from "./params.ts";

/**
 * Maximum number of transactions of a block that are formatted in one turn, in about 5 ms; new blocks wait for that. Most of the time goes into recovering
 * senders. Long transactions take longer, so CHECKED_BYTES_MAX ends a turn too.
 */
const FORMATTED_PER_TURN = 64;

export const blockMethods: RpcMethods<ReadContext> = {
  eth_blockNumber: ({ chain }) => toQuantity(chain.head.header.number),
  eth_getBlockByNumber: (context, params) =>
    describeBlock(context, findBlock(context.chain, params.required(0)), { isFull: params.optional(1) === true }),
  eth_getBlockByHash: (context, params) =>
    describeBlock(context, byHash(context, params), { isFull: params.optional(1) === true }),
  eth_getBlockTransactionCountByNumber: (context, params) =>
    count(context, findBlock(context.chain, params.required(0))),
  eth_getBlockTransactionCountByHash: (context, params) => count(context, byHash(context, params)),
  eth_getUncleCountByBlockNumber: ({ chain }, params) =>
    findBlock(chain, params.required(0)) === undefined ? null : "0x0",
  eth_getUncleCountByBlockHash: (context, params) => (byHash(context, params) === undefined ? null : "0x0"),
  eth_getBlockReceipts: ({ chain }, params) => {
    const tag = params.required(0);
    const isHash = typeof tag === "string" && tag.length === 66;
    const head = isHash ? chain.blocks.findHeadByHash(params.hash(0)) : findBlock(chain, tag);
    if (head === undefined) return null;
    return formatEach(head, chain.blocks.readExecuted(head), formatReceipt);
  },
};

function byHash({ chain }: ReadContext, params: Params): BlockHead | undefined {
  return chain.blocks.findHeadByHash(params.hash(0));
}

async function describeBlock(
  { chain }: ReadContext,
  head: BlockHead | undefined,
  { isFull }: { readonly isFull: boolean },
): Promise<unknown> {
  if (head === undefined) return null;
  const executed = chain.blocks.readExecuted(head);
  const hashes = (): readonly unknown[] => executed.map(({ transaction }) => toHex(transaction.hash));
  return formatBlock(head, executed, isFull ? await formatEach(head, executed, formatTransaction) : hashes());
}

async function formatEach(
  head: BlockHead,
  executed: readonly ExecutedTransaction[],
  format: (included: IncludedTransaction) => unknown,
): Promise<readonly unknown[]> {
  const formatted: unknown[] = [];
  let [from, bytes] = [0, 0]; // First transaction and bytes of the current turn.
  for (const [index, one] of executed.entries()) {
    if (index === from + FORMATTED_PER_TURN || bytes >= CHECKED_BYTES_MAX) {
      await nextTurn();
      [from, bytes] = [index, 0];
    }
    formatted.push(format({ ...one, head, index }));
    bytes += one.transaction.raw.length;
  }
  return formatted;
}

function count({ chain }: ReadContext, head: BlockHead | undefined): unknown {
  return head === undefined ? null : toQuantity(chain.blocks.readExecuted(head).length);
}
