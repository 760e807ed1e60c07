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
  /** Missing in the answers of some chain nodes. */
  readonly transactionIndex?: Hex;
  readonly logIndex: Hex;
}

const fields = ["address", "data", "blockNumber", "blockHash", "transactionHash", "logIndex"] as const;

/** Whether an answer to eth_getLogs is a list of logs of blocks. */
export function isLogList(value: unknown): value is readonly RpcLog[] {
  return Array.isArray(value) && value.every(isLog);
}

/** The logs in the order of the chain, each once: some chain nodes return the newest block first, or a log twice. */
export function inOrder(logs: readonly RpcLog[]): readonly RpcLog[] {
  const places = placesOf(logs.filter(({ transactionIndex }) => !isHex(transactionIndex)));
  const transactionOf = (log: RpcLog): number => Number(log.transactionIndex ?? places.get(log.transactionHash) ?? 0);
  /** By transaction before the index of the log: on some chains, that index starts at 0 in each transaction. */
  const compare = (one: RpcLog, other: RpcLog): number =>
    Number(one.blockNumber) - Number(other.blockNumber) ||
    transactionOf(one) - transactionOf(other) ||
    Number(one.logIndex) - Number(other.logIndex);
  const isAfter = (log: RpcLog, before: RpcLog | undefined): boolean =>
    before === undefined || compare(before, log) < 0;
  if (logs.every((log, index) => isAfter(log, logs[index - 1]))) return logs;
  const sorted = logs.toSorted(compare);
  return sorted.filter((log, index) => !isSame(log, sorted[index - 1]));
}

/**
 * The order of transactions for which the endpoint gives no index. If two transactions of a block have logs with the same index, those of the block keep the
 * order of the answer. Otherwise they get no place, since the indexes of their logs give the order.
 */
function placesOf(logs: readonly RpcLog[]): ReadonlyMap<Hash, number> {
  const transactions = new Map<string, Hash>();
  const mixed = new Set<Hash>();
  for (const { blockHash, logIndex, transactionHash } of logs) {
    const place = `${blockHash} ${Number(logIndex)}`;
    const other = transactions.get(place);
    if (other !== undefined && other !== transactionHash) mixed.add(blockHash);
    transactions.set(place, transactionHash);
  }
  const places = new Map<Hash, number>();
  for (const { blockHash, transactionHash } of logs)
    if (mixed.has(blockHash) && !places.has(transactionHash)) places.set(transactionHash, places.size);
  return places;
}

function isSame(one: RpcLog, other: RpcLog | undefined): boolean {
  return (
    other !== undefined &&
    one.blockHash === other.blockHash &&
    one.transactionHash === other.transactionHash &&
    Number(one.logIndex) === Number(other.logIndex) &&
    String(one.topics) === String(other.topics)
  );
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
