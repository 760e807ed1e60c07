import { emptyBytes, isSameBytes, keccak256, toBuffer } from "@stele/eth/node";
import { parseTransaction } from "../blocks/transaction.ts";
import type { RepairableBlock, KnownTransaction } from "../messages.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import type { TransactionRow } from "../storage/executed-rows.ts";
import { readVerifiedBlocks } from "./verified-blocks.ts";

/** Longest stored receipt that is searched, in bytes. A receipt that repeats more data refers to the transaction instead. */
const RECEIPT_BYTES_MAX = 65_536;
/** Longest part that is searched for in a receipt, in bytes. The receipt refers to the transaction for longer parts. */
const PART_BYTES_MAX = 64;

/**
 * Repairs damaged bytes of a block with the transactions that the owner knows. Writes only if the whole block then matches its hashes, so a wrong guess does no
 * harm. Returns whether it wrote.
 */
export function repairBlock(database: ChainDatabase, { number, transactions }: RepairableBlock): boolean {
  return database.tryChange(() => {
    const rows = database.readRows(number).map((row) => repairRow(row, transactions));
    for (const row of rows) database.replaceRow(row);
    if (fitsItsHashes(database, number)) return true;
    // Repair receipts only if repaired transactions do not suffice: an intact receipt may contain bytes that resemble a part, and a repair would damage it.
    for (const { known, ...row } of rows) if (known !== undefined) database.replaceRow(withReceipt(row, known));
    return fitsItsHashes(database, number);
  });
}

function fitsItsHashes(database: ChainDatabase, number: bigint): boolean {
  try {
    return readVerifiedBlocks(database, { from: number, to: number, bytesMax: 1 }).length === 1;
  } catch {
    return false;
  }
}

/** A row with its transaction repaired; `known` is undefined if the owner does not know the transaction. */
type RepairedRow = TransactionRow & { readonly known: KnownTransaction | undefined };

function repairRow({ place, raw, receipt }: TransactionRow, transactions: readonly KnownTransaction[]): RepairedRow {
  const own = keccak256(raw);
  const intact = transactions.find(({ hash }) => isSameBytes(hash, own));
  if (intact !== undefined) return { place, raw, receipt, known: intact };
  for (const known of transactions) {
    const repaired = repairRaw(raw, known);
    if (repaired !== undefined) return { place, raw: repaired, receipt, known };
  }
  return { place, raw, receipt, known: undefined };
}

function repairRaw(raw: Uint8Array, { hash, data }: KnownTransaction): Uint8Array | undefined {
  const at = findData(raw, data.length);
  if (at === undefined) return undefined;
  const repaired = Buffer.from(raw);
  repaired.set(data, at);
  return isSameBytes(keccak256(repaired), hash) ? repaired : undefined;
}

/** The offset of the data in an encoded transaction; undefined if the data has another length, or if the bytes around it are damaged. */
function findData(raw: Uint8Array, length: number): number | undefined {
  try {
    const { data } = parseTransaction(raw, emptyBytes); // The sender does not matter here.
    return data.length === length ? data.byteOffset - raw.byteOffset : undefined;
  } catch {
    return undefined;
  }
}

/** The row with its receipt repaired. A receipt contains short parts literally: each missing part replaces the bytes that resemble it most. */
function withReceipt({ place, raw, receipt }: TransactionRow, { logged }: KnownTransaction): TransactionRow {
  const repaired = Buffer.from(receipt);
  if (repaired.length > RECEIPT_BYTES_MAX) return { place, raw, receipt };
  for (const part of logged) {
    if (part.length > PART_BYTES_MAX || repaired.includes(toBuffer(part))) continue;
    const at = findLikest(repaired, part);
    if (at !== undefined) repaired.set(part, at);
  }
  return { place, raw, receipt: repaired };
}

/** The offset at which most bytes equal those of `part`; undefined if no offset has at least half of them equal. */
function findLikest(bytes: Uint8Array, part: Uint8Array): number | undefined {
  let likest: number | undefined;
  let most = part.length / 2;
  for (let at = 0; at + part.length <= bytes.length; at += 1) {
    let same = 0;
    for (let index = 0; index < part.length; index += 1) if (bytes[at + index] === part[index]) same += 1;
    if (same >= most) [likest, most] = [at, same];
  }
  return likest;
}
