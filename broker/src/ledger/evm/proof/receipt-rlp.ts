import { toRlp } from "viem/utils";
import { fromHex, integerBytes } from "../hex.ts";
import { isHex, type RpcObject } from "./header-rlp.ts";

/** A receipt as the receipts trie contains it; undefined if the endpoint's answer is incomplete. */
export function findReceiptBytes(receipt: RpcObject): Uint8Array | undefined {
  const { cumulativeGasUsed, logsBloom, logs, type } = receipt;
  // Before Byzantium, receipts have the state root in place of the status.
  const outcome = isHex(receipt["status"]) ? integerBytes(BigInt(receipt["status"])) : dataOf(receipt["root"]);
  const bloom = dataOf(logsBloom);
  const items = Array.isArray(logs) ? logs.map(findLogItems) : [undefined];
  if (outcome === undefined || !isHex(cumulativeGasUsed) || bloom === undefined) return undefined;
  if (items.some((item) => item === undefined)) return undefined;
  const fields = [
    outcome,
    integerBytes(BigInt(cumulativeGasUsed)),
    bloom,
    items.flatMap((item) => (item ? [item] : [])),
  ];
  const encoded = toRlp(fields, "bytes");
  const kind = isHex(type) ? Number(type) : 0;
  return kind === 0 ? encoded : Buffer.concat([Uint8Array.of(kind), encoded]);
}

type LogItems = [Uint8Array, Uint8Array[], Uint8Array];

function findLogItems(log: RpcObject): LogItems | undefined {
  const address = dataOf(log["address"]);
  const data = dataOf(log["data"]);
  const topics = Array.isArray(log["topics"]) ? log["topics"].map(dataOf) : [undefined];
  if (address === undefined || data === undefined || topics.some((topic) => topic === undefined)) return undefined;
  return [address, topics.flatMap((topic) => (topic ? [topic] : [])), data];
}

function dataOf(value: unknown): Uint8Array | undefined {
  return isHex(value) ? fromHex(value) : undefined;
}
