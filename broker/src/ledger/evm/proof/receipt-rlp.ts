import { encodeReceipt, fromHex, fromInteger, type ReceiptFieldsLog } from "@stele/eth/node";
import { isQuantity } from "../endpoint/rpc-log.ts";
import { isHex, type RpcObject } from "./header-rlp.ts";

/** A receipt as the receipts trie contains it; undefined if the endpoint's answer is incomplete. */
export function findReceiptBytes(receipt: RpcObject): Uint8Array | undefined {
  const { cumulativeGasUsed, logsBloom, logs, type } = receipt;
  // Before Byzantium, receipts have the state root in place of the status.
  const outcome = isQuantity(receipt["status"]) ? fromInteger(BigInt(receipt["status"])) : dataOf(receipt["root"]);
  const bloom = dataOf(logsBloom);
  const items = Array.isArray(logs) ? logs.map(findLogFields) : [undefined];
  if (outcome === undefined || !isQuantity(cumulativeGasUsed) || bloom === undefined) return undefined;
  if (items.some((item) => item === undefined)) return undefined;
  return encodeReceipt({
    type: isQuantity(type) ? Number(type) : 0,
    outcome,
    cumulativeGasUsed: BigInt(cumulativeGasUsed),
    bloom,
    logs: items.flatMap((item) => item ?? []),
  });
}

function findLogFields(log: RpcObject | null): ReceiptFieldsLog | undefined {
  if (log === null) return undefined;
  const address = dataOf(log["address"]);
  const data = dataOf(log["data"]);
  const topics = Array.isArray(log["topics"]) ? log["topics"].map(dataOf) : [undefined];
  if (address === undefined || data === undefined || topics.some((topic) => topic === undefined)) return undefined;
  return { address, topics: topics.flatMap((topic) => topic ?? []), data };
}

function dataOf(value: unknown): Uint8Array | undefined {
  return isHex(value) ? fromHex(value) : undefined;
}
