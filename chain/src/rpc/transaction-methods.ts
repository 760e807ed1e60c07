import { toHex } from "@stele/eth/node";
import type { BlockHead } from "../blocks/block.ts";
import { BASE_FEE_PER_GAS } from "../limits.ts";
import { findBlock } from "./block-tag.ts";
import type { ReadContext, RpcContext, RpcMethods } from "./context.ts";
import { formatPending, formatReceipt, formatTransaction } from "./format.ts";
import type { Params } from "./params.ts";

export const submitMethods: RpcMethods<RpcContext> = {
  eth_sendRawTransaction: ({ chain }, params) => chain.submit(params.data(0)),
};

export const transactionMethods: RpcMethods<ReadContext> = {
  eth_getTransactionByHash: ({ chain }, params) => {
    const hash = params.hash(0);
    const pending = chain.findPending(toHex(hash));
    if (pending !== undefined) return formatPending(pending, BASE_FEE_PER_GAS);
    const included = chain.blocks.findTransaction(hash);
    return included === undefined ? null : formatTransaction(included);
  },
  eth_getTransactionReceipt: ({ chain }, params) => {
    const included = chain.blocks.findTransaction(params.hash(0));
    return included === undefined ? null : formatReceipt(included);
  },
  eth_getTransactionByBlockNumberAndIndex: (context, params) =>
    byIndex(context, findBlock(context.chain, params.required(0)), params),
  eth_getTransactionByBlockHashAndIndex: (context, params) =>
    byIndex(context, context.chain.blocks.findHeadByHash(params.hash(0)), params),
};

function byIndex({ chain }: ReadContext, head: BlockHead | undefined, params: Params): unknown {
  const index = Number(params.quantity(1));
  if (head === undefined) return null;
  const executed = chain.blocks.readExecuted(head)[index];
  return executed === undefined ? null : formatTransaction({ ...executed, head, index });
}
