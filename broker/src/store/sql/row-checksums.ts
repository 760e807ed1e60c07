import { type RawBuilder, sql } from "kysely";
import { Checksum } from "../checksum.ts";
import type { DeadLetterTable } from "./subscriptions/dead-letter-table.ts";
import type { IndexTable } from "./index/index-tables.ts";
import type {
  BatchTable,
  BlockTable,
  GroupTable,
  PublishKeyTable,
  RetainedTable,
  SkippedEntryTable,
  SqlDatabase,
  SubscriptionTable,
  TopicRow,
  VanishedTable,
} from "./schema.ts";

/** Rows of the tables whose content the broker serves. */
interface CheckedTables {
  readonly groups: GroupTable;
  readonly topics: TopicRow;
  readonly blocks: BlockTable;
  readonly batches: BatchTable;
  readonly retained: RetainedTable;
  readonly vanished: Omit<VanishedTable, "vanished_id">;
  readonly skipped_entries: SkippedEntryTable;
  readonly subscriptions: SubscriptionTable;
  readonly dead_letters: DeadLetterTable;
  readonly publish_keys: PublishKeyTable;
}
type CheckedTable = keyof CheckedTables;
type Unchecked<Row> = Omit<Row, "checksum">;

/**
 * The columns that each table's `checksum` covers. It does not cover keys that the database assigns. Of a subscription, it covers neither owner and claim,
 * which nodes rewrite, nor epoch and progress, which have a check of their own (see progressCheck). `events_checksum` covers a batch's events.
 */
const checkedColumns: { readonly [Table in CheckedTable]: readonly (keyof CheckedTables[Table] & string)[] } = {
  groups: ["group_id", "block_number", "block_hash", "generation", "batch_count"],
  topics: [
    "group_id",
    "ordinal",
    "name",
    "digest",
    "address",
    "sender",
    "created_timestamp",
    "sequence",
    "block_number",
    "closed",
    "event_count",
  ],
  blocks: ["group_id", "number", "hash", "undo"],
  batches: [
    "group_id",
    "ordinal",
    "first_position",
    "last_position",
    "first_sequence",
    "events_before",
    "byte_count",
    "transaction_hash",
    "log_index",
    "publisher",
    "events_checksum",
  ],
  retained: ["group_id", "name", "sequence", "position"],
  vanished: [
    "group_id",
    "digest",
    "topic",
    "first_sequence",
    "first_position",
    "last_position",
    "transaction_hash",
    "log_index",
  ],
  skipped_entries: ["group_id", "block_number", "log_index", "code", "reason", "address", "transaction_hash"],
  subscriptions: ["id", "group_id", "filter", "interface_type", "url", "receiver", "state", "created_at"],
  dead_letters: ["subscription_id", "position", "event_id", "topic", "attempts", "reason", "failed_at"],
  publish_keys: ["group_id", "scope", "key", "token", "topic", "after_position", "digest", "sender", "recorded_at"],
};

/** Columns that only later versions cover: a row without values in them keeps its earlier checksum. */
const optionalColumns: { readonly [Table in CheckedTable]?: readonly OptionalColumn[] } = {
  subscriptions: ["principal", "secret", "delivery_options"],
  skipped_entries: ["sender"],
};
type OptionalColumn = "principal" | "secret" | "delivery_options" | "sender";

/** The checksum of a row. `bound` is a value of another table that it covers too, such as the name of a batch's topic. */
export function checksumOfRow<Table extends CheckedTable>(
  table: Table,
  row: Partial<Unchecked<CheckedTables[Table]>>,
  bound?: string,
): number {
  const columns: readonly string[] = checkedColumns[table];
  const values: Readonly<Record<string, unknown>> = row;
  const checksum = new Checksum();
  for (const name of columns) checksum.add(values[name]);
  if (bound !== undefined) checksum.add(bound);
  for (const name of optionalColumns[table] ?? []) {
    for (const value of optionalValue(name, values[name])) checksum.add(value);
  }
  return checksum.end();
}

/** What a column adds to the checksum. A secret adds only that it exists: decrypting a changed secret fails, which locks only its own subscription. */
function optionalValue(name: OptionalColumn, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (name === "principal" || name === "sender") return [value];
  return name === "secret" ? [name] : [name, value];
}

/** Sets the checksum of a row that has none yet. */
export function fillChecksum<
  Table extends CheckedTable,
  Row extends Partial<Unchecked<CheckedTables[Table]>> & { checksum: number },
>(table: Table, row: Row, bound?: string): Row {
  row.checksum = checksumOfRow(table, row, bound);
  return row;
}

/** The row with a new checksum. The spread comes last for V8's hidden classes; see toSpan in index-plan.ts. */
export function withChecksum<Table extends CheckedTable, Row extends Partial<Unchecked<CheckedTables[Table]>>>(
  table: Table,
  row: Row,
): Row & { readonly checksum: number } {
  return fillChecksum(table, { checksum: 0, ...row });
}

/** A prime below 2^31: no power of two is a multiple of it, so a change of any single bit is detected. */
export const progressPrime = 2_147_483_647;

/**
 * A value modulo {@link progressPrime}; NaN, which equals no check, unless it is a safe integer. One flipped bit in SQLite's file may turn a 0 into NULL or
 * an empty blob, which `%` reads as 0. In a larger number, rounding may cancel the difference that a flipped bit made.
 */
export function residueOf(value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) % progressPrime : Number.NaN;
}

/** Value of `progress_check`: a sum, so that the database can compute it when one statement changes many rows. */
export function progressCheck(row: ProgressColumns): number {
  const { cursor, notified_count, notified_at, failed_attempts, failed_ms, failing_since, retry_at, epoch } = row;
  return (
    residueOf(cursor) * 3 +
    residueOf(notified_count) * 5 +
    residueOf(notified_at) * 7 +
    residueOf(failed_attempts) * 11 +
    residueOf(failed_ms) * 13 +
    residueOf(failing_since) * 19 +
    residueOf(retry_at) * 23 +
    residueOf(epoch) * 17
  );
}

/** The difference that a subscription's next epoch makes to `progress_check`. Statements add it, so that a damaged row stays damaged. */
export function nextEpochCheckSql(epoch = sql<number>`epoch`): RawBuilder<number> {
  return sql<number>`((${epoch} + 1) % ${sql.lit(progressPrime)} - ${epoch} % ${sql.lit(progressPrime)}) * 17`;
}

type ProgressColumns = Pick<
  SubscriptionTable,
  "cursor" | "notified_count" | "notified_at" | "failed_attempts" | "failed_ms" | "failing_since" | "retry_at" | "epoch"
>;

/** `progressCheck` as an SQL expression, from expressions for the first three values. */
export function progressCheckSql(cursor: RawBuilder<number>, count: RawBuilder<number>, at = sql<number>`notified_at`) {
  return sql<number>`(${cursor} % ${progressPrime}) * 3 + (${count} % ${progressPrime}) * 5 + (${at} % ${progressPrime}) * 7
    + ${failureCheckSql} + (retry_at % ${progressPrime}) * 23 + (epoch % ${progressPrime}) * 17`;
}

/** What the failure of the event after the cursor adds to `progress_check`, except `retry_at`. */
export const failureCheckSql = sql<number>`(failed_attempts % ${sql.lit(progressPrime)}) * 11
  + (failed_ms % ${sql.lit(progressPrime)}) * 13 + (failing_since % ${sql.lit(progressPrime)}) * 19`;

/** Whether a subscription's row is intact. */
export function isIntactSubscription(row: SubscriptionTable): boolean {
  return progressCheck(row) === row.progress_check && checksumOfRow("subscriptions", row) === row.checksum;
}

/** Returns the row if it is intact. @throws StoreError `corrupt`, which `damaged` reports. */
export function checkRow<Table extends Exclude<IndexTable, "batches">, Row extends CheckedTables[Table]>(
  { damaged }: Pick<SqlDatabase, "damaged">,
  table: Table,
  row: Row,
): Row {
  if (checksumOfRow(table, row) !== row.checksum)
    throw damaged(`a row of the table ${table} does not match its checksum`);
  return row;
}
