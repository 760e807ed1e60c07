import { type RawBuilder, sql } from "kysely";
import { fromStored } from "../../../domain/position.ts";
import type { SharePlace, StoredShare } from "../../../ports/share-store.ts";
import type { ShareId } from "../../../ports/session-store.ts";
import { checksumOf } from "../../checksum.ts";
import { progressPrime, residueOf } from "../row-checksums.ts";
import type { ShareEventTable, ShareTable } from "./share-tables.ts";

/** Selects the filters of shares. A query must use exactly this condition: databases then choose the partial index with the same condition. */
export const ofShare = sql<boolean>`filter like '$share/%'`;

/** Value of `cursor_check`: a sum, so that the database can compute it when one statement changes many rows. */
export function cursorCheck({ cursor, epoch }: Pick<ShareTable, "cursor" | "epoch">): number {
  return residueOf(cursor) + residueOf(epoch) * 3;
}

/** `cursorCheck` as an SQL expression. */
export function cursorCheckSql(cursor: RawBuilder<number>, epoch: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`(${cursor}) % ${sql.lit(progressPrime)} + ((${epoch}) % ${sql.lit(progressPrime)}) * 3`;
}

function checksumOfShare({ share_id, group_id, filter }: Pick<ShareTable, "share_id" | "group_id" | "filter">): number {
  return checksumOf([share_id, group_id, filter]);
}

export function toShareRow(share: Omit<ShareTable, "cursor_check" | "checksum">): ShareTable {
  return { ...share, cursor_check: cursorCheck(share), checksum: checksumOfShare(share) };
}

/** Undefined for a damaged row. */
export function fromShareRow(row: ShareTable): StoredShare | undefined {
  if (checksumOfShare(row) !== row.checksum || cursorCheck(row) !== row.cursor_check) return undefined;
  return { id: row.share_id as ShareId, epoch: row.epoch, cursor: fromStored(row.cursor) };
}

/** The columns that an event's checksum covers, and the checksum. It omits the member's columns, which one statement may change in many rows. */
type CheckedEvent = Pick<ShareEventTable, "share_id" | "position" | "topic" | "checksum">;

function checksumOfEvent({ share_id, position, topic }: Omit<CheckedEvent, "checksum">): number {
  return checksumOf([share_id, position, topic]);
}

export function toShareEventRow(row: Omit<ShareEventTable, "checksum">): ShareEventTable {
  return { ...row, checksum: checksumOfEvent(row) };
}

/** Undefined for a damaged row. */
export function fromShareEventRow(row: CheckedEvent): SharePlace | undefined {
  if (checksumOfEvent(row) !== row.checksum) return undefined;
  return { topic: row.topic as SharePlace["topic"], position: fromStored(row.position) }; // Unchanged since it was stored.
}
