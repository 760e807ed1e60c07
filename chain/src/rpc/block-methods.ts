import { toQuantity } from "@stele/eth/node";
import type { BlockHead } from "../blocks/block.ts";
import { findBlock } from "./block-tag.ts";
import type { ReadContext, RpcMethods } from "./context.ts";
import { formatBlock, formatReceipt } from "./format.ts";
import type { Params } from "./params.ts";

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
    return chain.blocks.readExecuted(head).map((executed, index) => formatReceipt({ ...executed, head, index }));
  },
};

function byHash({ chain }: ReadContext, params: Params): BlockHead | undefined {
  return chain.blocks.findHeadByHash(params.hash(0));
}

function describeBlock(
  { chain }: ReadContext,
  head: BlockHead | undefined,
  options: { readonly isFull: boolean },
): unknown {
  return head === undefined ? null : formatBlock(head, chain.blocks.readExecuted(head), options);
}

function count({ chain }: ReadContext, head: BlockHead | undefined): unknown {
  return head === undefined ? null : toQuantity(chain.blocks.readExecuted(head).length);
}
