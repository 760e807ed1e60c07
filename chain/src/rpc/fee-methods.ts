import { toQuantity } from "@stele/eth/node";
import type { BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { effectiveGasPrice } from "../blocks/transaction.ts";
import { BASE_FEE_PER_GAS, FEE_HISTORY_BLOCKS_MAX, FEE_HISTORY_PERCENTILES_MAX } from "../limits.ts";
import { invalidParams } from "../rpc-error.ts";
import { getBlock } from "./block-tag.ts";
import type { ReadContext, RpcMethods } from "./context.ts";
import type { Params } from "./params.ts";

export const feeMethods: RpcMethods<ReadContext> = {
  eth_gasPrice: () => toQuantity(BASE_FEE_PER_GAS),
  eth_maxPriorityFeePerGas: () => "0x0",
  eth_blobBaseFee: () => "0x1",
  eth_feeHistory: feeHistory,
};

function feeHistory({ chain }: ReadContext, params: Params): unknown {
  const newest = getBlock(chain, params.required(1)).header.number;
  const wanted = toCount(params.required(0), newest);
  const percentiles = toPercentiles(params.optional(2));
  const oldest = newest - wanted + 1n;
  const heads = Array.from({ length: Number(wanted) }, (_, index) =>
    getBlock(chain, toQuantity(oldest + BigInt(index))),
  );
  return {
    oldestBlock: toQuantity(oldest),
    baseFeePerGas: Array.from({ length: heads.length + 1 }, () => toQuantity(BASE_FEE_PER_GAS)),
    gasUsedRatio: heads.map(({ header }) => Number(header.gasUsed) / Number(header.gasLimit)),
    baseFeePerBlobGas: Array.from({ length: heads.length + 1 }, () => "0x1"),
    blobGasUsedRatio: heads.map(() => 0),
    ...(percentiles.length === 0
      ? {}
      : { reward: heads.map((head) => rewards(head, chain.blocks.readExecuted(head), percentiles)) }),
  };
}

function toCount(value: unknown, newest: bigint): bigint {
  const asked = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : parse(value);
  const bounded = asked < BigInt(FEE_HISTORY_BLOCKS_MAX) ? asked : BigInt(FEE_HISTORY_BLOCKS_MAX);
  if (bounded < 1n) throw invalidParams("invalid block count: must be at least 1");
  return bounded < newest + 1n ? bounded : newest + 1n;
}

function parse(value: unknown): bigint {
  if (typeof value !== "string" || !/^(?:0x[0-9a-fA-F]{1,16}|\d{1,16})$/.test(value))
    throw invalidParams("invalid block count");
  return BigInt(value);
}

function toPercentiles(value: unknown): number[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw invalidParams("invalid reward percentiles: must be an array");
  if (value.length > FEE_HISTORY_PERCENTILES_MAX) {
    throw invalidParams(`invalid reward percentile: over the query limit ${FEE_HISTORY_PERCENTILES_MAX}`);
  }
  const numbers = value.filter((one: unknown) => typeof one === "number");
  if (numbers.length < value.length) throw invalidParams("invalid reward percentile: must be a number");
  const isOrdered = numbers.every((one, index) => one >= 0 && one <= 100 && one >= (numbers[index - 1] ?? 0));
  if (!isOrdered) throw invalidParams("invalid reward percentile: must be between 0 and 100 and ascending");
  return numbers;
}

/** The tips that the transactions paid per gas, lowest first, at these percentiles of the block's used gas. */
function rewards(
  { header }: BlockHead,
  executed: readonly ExecutedTransaction[],
  percentiles: readonly number[],
): string[] {
  const tips = executed
    .map(({ transaction, receipt }) => ({
      tip: effectiveGasPrice(transaction, header.baseFeePerGas) - header.baseFeePerGas,
      gasUsed: Number(receipt.gasUsed),
    }))
    .toSorted((left, right) => (left.tip < right.tip ? -1 : Number(left.tip > right.tip)));
  return percentiles.map((percentile) => toQuantity(tipAt(tips, (Number(header.gasUsed) * percentile) / 100)));
}

function tipAt(tips: readonly { readonly tip: bigint; readonly gasUsed: number }[], threshold: number): bigint {
  let sum = 0;
  for (const { tip, gasUsed } of tips) {
    sum += gasUsed;
    if (sum >= threshold) return tip;
  }
  return tips.at(-1)?.tip ?? 0n;
}
