import type { Generated, Kysely, RawBuilder, Selectable, SelectQueryBuilder, Transaction } from "kysely";
import type { StoreError } from "./store-error.ts";
import type { GroupLeaseTable, NodeTable, SignerTable } from "./coordination-tables.ts";
import type { DeadLetterTable } from "./subscriptions/dead-letter-table.ts";
import type { ShareEventTable, ShareTable } from "./sessions/share-tables.ts";
import type { IndexFinding } from "./index/index-tables.ts";
import type { OpenFile } from "../../lib/system/open-file.ts";
import type { GroupLease, Hint } from "../../ports/coordinator.ts";
import type { TopicPosition } from "../../ports/store.ts";

/** The head of each group's index. */
export interface GroupTable {
  readonly group_id: string;
  readonly block_number: number;
  readonly block_hash: string;
  /** Number of times that the index was rolled back or emptied. */
  readonly generation: number;
  /** Number of stored batches, equal to the `ordinal` of the newest. */
  readonly batch_count: number;
  /** Checksum of the row; see row-checksums.ts, also for the tables below. */
  readonly checksum: number;
}

/** One row for each topic. `ordinal` counts a group's topics from 1 in the order of opening, `event_count` counts stored events, not skipped ones. */
export interface TopicTable {
  readonly topic_id: Generated<number>;
  readonly group_id: string;
  readonly ordinal: number;
  readonly name: string;
  readonly digest: string;
  readonly address: string;
  readonly sender: string;
  readonly created_timestamp: number;
  readonly sequence: number;
  readonly block_number: number;
  readonly closed: number;
  readonly event_count: number;
  readonly checksum: number;
}

/** A topic's row as queries return it. */
export type TopicRow = Selectable<TopicTable>;

/** The columns of a topic that a block can change, and its key. */
export type TopicChange = Pick<
  TopicRow,
  "topic_id" | "sequence" | "block_number" | "closed" | "event_count" | "checksum"
>;

/**
 * One row for each batch. Range queries use `last_position`, so that one look-up also finds a batch that spans the start of a range.
 * `events_before` counts the topic's stored events before this batch, so that a count takes two look-ups; `ordinal` counts the group's
 * batches from 1. Neither has gaps: a gap shows that a damaged database did not find a batch. Queries for one topic filter by
 * `topic_id` alone, so that no planner uses the group's index for them.
 */
export interface BatchTable {
  readonly group_id: string;
  readonly ordinal: number;
  readonly first_position: number;
  readonly last_position: number;
  readonly topic_id: number;
  readonly first_sequence: number;
  readonly events_before: number;
  readonly byte_count: number;
  readonly transaction_hash: string;
  readonly log_index: number;
  readonly publisher: string;
  /** Checksum of `events`. */
  readonly events_checksum: number;
  /** Checksum of the topic's name and all columns except `topic_id` and `events`: a check need not read the events. `dropEvents` makes it negative. */
  readonly checksum: number;
  /** The last column, so that reading the others does not load it. `dropEvents` empties it and keeps `byte_count`. */
  readonly events: Uint8Array;
}

/** Identifies the row of one batch and the content of its events. */
export type BatchKey = Pick<
  BatchTable,
  "group_id" | "last_position" | "first_sequence" | "transaction_hash" | "events_checksum"
>;

/** One row for each block that a rollback can remove, and for the block before them. `undo` is the plan's BlockUndo as JSON. */
export interface BlockTable {
  readonly group_id: string;
  readonly number: number;
  readonly hash: string;
  readonly undo: string;
  readonly checksum: number;
}

/** One row for each topic that retains an event; see the port's RetainedEvent. It has the topic's name, since filters query ranges of names. */
export interface RetainedTable {
  readonly group_id: string;
  readonly name: string;
  readonly sequence: number;
  readonly position: number;
  readonly checksum: number;
}

/** One row for each of the newest batches that reorgs removed; the key counts up. */
export interface VanishedTable {
  readonly vanished_id: Generated<number>;
  readonly group_id: string;
  readonly digest: string;
  readonly topic: string;
  readonly first_sequence: number;
  readonly first_position: number;
  readonly last_position: number;
  readonly transaction_hash: string;
  readonly log_index: number;
  readonly checksum: number;
}

/** One row for each skipped entry; see the port's SkippedEntry. */
export interface SkippedEntryTable {
  readonly group_id: string;
  readonly block_number: number;
  readonly log_index: number;
  readonly code: string;
  readonly reason: string;
  readonly address: string;
  readonly transaction_hash: string;
  /** Null if it is not known. */
  readonly sender: string | null;
  readonly checksum: number;
}

/** One row for each subscription; see the domain's Subscription. */
export interface SubscriptionTable {
  readonly id: string;
  readonly group_id: string;
  readonly filter: string;
  readonly interface_type: string;
  readonly url: string;
  /** See findReceiver in domain. */
  readonly receiver: string | null;
  readonly secret: string | null;
  readonly state: string;
  readonly cursor: number;
  readonly notified_count: number;
  readonly notified_at: number;
  readonly failed_attempts: number;
  readonly failed_ms: number;
  readonly failing_since: number;
  readonly retry_at: number;
  readonly created_at: number;
  readonly owner: string | null;
  readonly epoch: number;
  /** The node that claims the subscription. The domain's Subscription does not have this field. */
  readonly wanted_by: string | null;
  /** Null for a subscription that was created without a credential. */
  readonly principal: string | null;
  /** The domain's DeliveryOptions as JSON; null if there are none. */
  readonly delivery_options: string | null;
  /** Check of the epoch and of the columns that are written with the cursor; see progressCheck. */
  readonly progress_check: number;
  readonly checksum: number;
}

/** One row for each session; see the port's StoredSession. Times except `created_at` are in session time. */
export interface SessionTable {
  readonly session_id: string;
  readonly group_id: string;
  readonly interface_type: string;
  readonly key: string;
  readonly principal: string;
  readonly owner: string | null;
  readonly epoch: number;
  readonly cursor: number;
  readonly taken: number;
  readonly outside: number;
  /** Check of `outside`; a position that does not match its check is not used. See outsideCheck. */
  readonly outside_check: number;
  /** Check of `cursor`, `taken`, `epoch` and `detached_at`; see stateCheck. */
  readonly state_check: number;
  readonly in_flight: Uint8Array;
  readonly in_flight_check: number;
  readonly expiry_ms: number;
  readonly will: Uint8Array | null;
  readonly will_delay_ms: number;
  readonly detached_at: number | null;
  /** When the session's will or end is due, whichever comes first; null while the session is connected. Computed from other columns; see dueAt. */
  readonly due_at: number | null;
  readonly created_at: number;
  /** Sum over the session's filters; see filtersCheck. */
  readonly filters_check: number;
  readonly checksum: number;
}

/** One row for each filter of a session. `options`: the QoS, 4 for no local, 8 for retain as published. */
export interface SessionFilterTable {
  readonly subscription_id: string;
  readonly session_id: string;
  readonly filter: string;
  readonly options: number;
  readonly identifier: number | null;
  readonly starts_after: number;
  readonly checksum: number;
}

/** The session time of each group, in milliseconds; see the port's StoredSession. */
export interface SessionTimeTable {
  readonly group_id: string;
  readonly ms: number;
  /** Three times `ms`, so that a change of either column shows. */
  readonly ms_check: number;
}

/** Which chain each group is on; see the GroupRecords port. */
export interface GroupChainTable {
  readonly group_id: string;
  readonly chain_id: number;
  readonly genesis_hash: string;
  readonly registry_address: string;
  /** The registry's set of the group's own signers. */
  readonly writers: number | null;
  readonly writers_owner: string | null;
}

/** One row for each transaction that may have been sent; see the Journal port. The last column contains every signed version of the transaction. */
export interface JournalTable {
  readonly group_id: string;
  readonly sender: string;
  readonly nonce: number;
  readonly recorded_at: number;
  readonly variants: Uint8Array;
}

/** One row for each publish with a key; see the PublishKeys port. */
export interface PublishKeyTable {
  readonly group_id: string;
  readonly scope: string;
  readonly key: string;
  readonly token: string;
  readonly topic: string;
  readonly after_position: number;
  readonly digest: string;
  readonly sender: string;
  readonly recorded_at: number;
  readonly checksum: number;
}

/** The tables after the newest migration. */
export interface Schema {
  readonly schema_version: { readonly version: number };
  readonly groups: GroupTable;
  readonly topics: TopicTable;
  readonly batches: BatchTable;
  readonly blocks: BlockTable;
  readonly vanished: VanishedTable;
  readonly retained: RetainedTable;
  readonly skipped_entries: SkippedEntryTable;
  readonly subscriptions: SubscriptionTable;
  readonly dead_letters: DeadLetterTable;
  readonly sessions: SessionTable;
  readonly session_subscriptions: SessionFilterTable;
  readonly session_times: SessionTimeTable;
  readonly shares: ShareTable;
  readonly share_events: ShareEventTable;
  readonly journal: JournalTable;
  readonly publish_keys: PublishKeyTable;
  readonly group_chains: GroupChainTable;
  readonly nodes: NodeTable;
  readonly group_leases: GroupLeaseTable;
  readonly signers: SignerTable;
}

/** One subscription's progress, as columns. */
export type ProgressRow = Pick<
  SubscriptionTable,
  | "id"
  | "epoch"
  | "cursor"
  | "notified_count"
  | "notified_at"
  | "failed_attempts"
  | "failed_ms"
  | "failing_since"
  | "retry_at"
  | "progress_check"
>;

/** `shared` excludes only `exclusive` holders. */
export type LockMode = "exclusive" | "shared";

/** Writes many rows in a transaction of this database. */
export interface RowWriter {
  /** Returns the keys of the new topics, in any order. */
  readonly insertTopics: (
    transaction: Transaction<Schema>,
    rows: readonly Omit<TopicRow, "topic_id">[],
  ) => Promise<readonly Pick<TopicRow, "topic_id" | "ordinal">[]>;
  /** `changes` has each topic once. */
  readonly updateTopics: (transaction: Transaction<Schema>, changes: readonly TopicChange[]) => Promise<void>;
  readonly insertBatches: (transaction: Transaction<Schema>, rows: readonly BatchTable[]) => Promise<void>;
  /** Empties `events` and complements `checksum` in the rows that still match their keys and have events; returns these rows. */
  readonly dropEvents: (
    transaction: Transaction<Schema>,
    rows: readonly BatchKey[],
  ) => Promise<readonly Pick<BatchTable, "last_position">[]>;
  /** Skips taken identifiers; returns the identifiers of the inserted rows, in any order. Give each identifier once. */
  readonly insertSubscriptions: (
    transaction: Transaction<Schema>,
    rows: readonly SubscriptionTable[],
  ) => Promise<readonly Pick<SubscriptionTable, "id">[]>;
}

/** The file of a database that only this process uses. */
export interface HeldFile {
  /** The file as it was when it was opened. */
  readonly opened: OpenFile;
  /**
   * Copies all commits into the file and keeps it unchanged until {@link release}, so that it can be copied: later commits stay in its log.
   * Nothing is committed while `meanwhile` runs. If it returns false or throws, the file may change again. Returns whether the file is held.
   */
  hold(meanwhile: () => Promise<boolean>): Promise<boolean>;
  release(): Promise<void>;
}

/** An open database with two levels of durability. */
export interface SqlDatabase {
  /** A commit is on disk when it returns. */
  readonly durable: Kysely<Schema>;
  /** Durable, for writes of a shared index and for those before a transaction of publishes. Few run at once, so they may overtake thousands of other calls. */
  readonly urgent: Kysely<Schema>;
  /** A commit survives a kill. After a power cut it is complete or absent. */
  readonly relaxed: Kysely<Schema>;
  /** Durable, with longer time limits for changes of whole tables or of a group's whole index. */
  readonly migrating: Kysely<Schema>;
  /** Whether other processes write to the database too. Then do not cache rows. */
  readonly isShared: boolean;
  /** Holds the lock of this name, across processes, until the transaction ends. */
  readonly lock: (transaction: Transaction<Schema>, name: string, mode?: LockMode) => Promise<void>;
  /** As `lock`, exclusively, for several names in the given order. */
  readonly lockAll: (transaction: Transaction<Schema>, names: readonly string[]) => Promise<void>;
  /** Locks the rows that a query returns against changes by others until the transaction ends. */
  readonly locking: <Table extends keyof Schema, Row>(
    query: SelectQueryBuilder<Schema, Table, Row>,
  ) => SelectQueryBuilder<Schema, Table, Row>;
  /** Prevents others from taking the lease until the transaction ends. Returns false if the lease was released or a newer one exists. */
  readonly holdLease: (transaction: Transaction<Schema>, lease: GroupLease) => Promise<boolean>;
  /** Sends hints to all listening processes once the transaction is committed. */
  readonly notify: (transaction: Transaction<Schema>, hints: readonly Hint[]) => Promise<void>;
  /** A column of texts that sorts by its bytes in every database. */
  readonly byBytes: (column: string) => RawBuilder<string>;
  /** Any number of values as one column of a query. */
  readonly column: (values: readonly string[]) => RawBuilder<string>;
  /** The places as a table with the columns topic, after and place, which counts from 0. */
  readonly places: (places: readonly TopicPosition[]) => RawBuilder<unknown>;
  readonly rowWriter: RowWriter;
  /**
   * Moves cursors forward in one relaxed transaction, and inserts the dead letters that the cursors pass. Returns the ids that have no row with the
   * given epoch.
   */
  readonly saveProgress: (
    rows: readonly ProgressRow[],
    letters: readonly DeadLetterTable[],
  ) => Promise<readonly string[]>;
  /** In SQLite, compares all tables but `batches` with their database indexes. Returns damage of the store's index. @throws StoreError `corrupt` for others. */
  readonly checkTables: (transaction: Transaction<Schema>) => Promise<IndexFinding | undefined>;
  /** In SQLite, checks the whole file after the index was emptied, since other tables may be damaged too. @throws StoreError `corrupt`. */
  readonly checkEmptied: (transaction: Transaction<Schema>) => Promise<void>;
  /** Rebuilds the indexes of the batches from their rows, in the transaction if one is given. */
  readonly reindexBatches: (transaction?: Transaction<Schema>) => Promise<void>;
  /** The database's file; undefined for a database server. */
  readonly file?: HeldFile;
  /** Creates and reports the error for damaged rows; `found` says what is wrong with which rows. */
  readonly damaged: (found: string) => StoreError;
  close(): Promise<void>;
}

/** One kind of database, with everything that is specific to it. */
export interface SqlBackend {
  /** Name of the database in error messages. */
  readonly description: string;
  readonly bytesType: "blob" | "bytea";
  /** Type of an auto-incremented primary key. */
  readonly keyType: "integer" | "bigserial";
  /** Type of a text that sorts by its bytes in every database. */
  readonly orderedTextType: "text" | 'text collate "C"';
  /** Drops the count of subscriptions that an earlier version made the database maintain. */
  readonly dropMaintainedCount?: (transaction: Kysely<Schema>) => Promise<void>;
  open(): Promise<SqlDatabase>;
}
