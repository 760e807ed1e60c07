import type { Hex } from "@stele/eth/node";
import type { Address, Hash } from "../../../domain/topic.ts";

/** A log as the endpoint returns it. */
export interface RpcLog {
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly data: Hex;
  readonly blockNumber: Hex;
  readonly blockHash: Hash;
  readonly transactionHash: Hash;
  readonly logIndex: Hex;
}

const fields = ["address", "data", "blockNumber", "blockHash", "transactionHash", "logIndex"] as const;

/** Whether an answer to eth_getLogs is a list of logs of blocks. */
export function isLogList(value: unknown): value is readonly RpcLog[] {
  return Array.isArray(value) && value.every(isLog);
}

function isLog(value: unknown): value is RpcLog {
  if (typeof value !== "object" || value === null) return false;
  const log = value as Partial<Record<keyof RpcLog, unknown>>; // The fields are checked below.
  return Array.isArray(log.topics) && log.topics.every(isHex) && fields.every((field) => isHex(log[field]));
}

export function isHex(value: unknown): value is Hex {
  return typeof value === "string" && value.startsWith("0x");
}

export function isQuantity(value: unknown): value is Hex {
  return typeof value === "string" && /^0x[0-9a-f]+$/i.test(value);
}
