import type { Generated, Kysely, RawBuilder, Selectable, SelectQueryBuilder, Transaction } from "kysely";
import type { StoreError } from "./store-error.ts";
import type { GroupLease, Hint } from "../../ports/coordinator.ts";
import type { TopicPlace } from "../../ports/store.ts";

/** How far each group's index is. */
export interface GroupTable {
  readonly group_id: string;
  readonly block_number: number;
  readonly block_hash: string;
  /** Times that the index went back. */
  readonly generation: number;
  /** Stored batches, which is the `ordinal` of the newest. */
  readonly batch_count: number;
  /** Over the row; see row-checksums.ts. So in every table that has it. */
  readonly checksum: number;
}

/**
 * One row a topic. `topic_id` is the database's own, `ordinal` counts from 1 in the order of opening in its group, and `event_count`
 * counts stored events, not skipped ones.
 */
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

/** A topic's row as it is read. */
export type TopicRow = Selectable<TopicTable>;

/** What a block can change of a topic, and the topic's key. */
export type TopicChange = Pick<
  TopicRow,
  "topic_id" | "sequence" | "block_number" | "closed" | "event_count" | "checksum"
>;

/**
 * One row a batch. Ranges are sought by `last_position`, so that a batch that lies across the start of a range is found without a
 * second look. `events_before` counts the topic's stored events before this batch, which makes every count two look-ups; `ordinal` counts the
 * group's batches from 1. Neither has a gap, so that a batch which a damaged database no longer finds is missed.
 * What is asked of one topic is asked by `topic_id` alone, so that no planner can take the group's index for it.
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
  /** Over `events`. */
  readonly events_checksum: number;
  /** Over all other columns and the topic's name, so that they can be checked without the events. */
  readonly checksum: number;
  /** The last column, so that the others are read without it. */
  readonly events: Uint8Array;
}

/** One row an applied block that can be taken back, and the one before them. `undo` is what the plan's BlockUndo has, as JSON. */
export interface BlockTable {
  readonly group_id: string;
  readonly number: number;
  readonly hash: string;
  readonly undo: string;
  readonly checksum: number;
}

/** One row a topic that retains an event; see the port's RetainedEvent. It has the name, since filters ask for ranges of names. */
export interface RetainedTable {
  readonly group_id: string;
  readonly name: string;
  readonly sequence: number;
  readonly position: number;
  readonly checksum: number;
}

/** One row a batch that a reorganisation took; the key counts up. */
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
}

/** One row an entry that was left out of the index; see the port's SkippedEntry. */
export interface SkippedEntryTable {
  readonly group_id: string;
  readonly block_number: number;
  readonly log_index: number;
  readonly code: string;
  readonly reason: string;
  readonly address: string;
  readonly transaction_hash: string;
}

/** One row a subscription; see the domain's Subscription. */
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
  readonly created_at: number;
  readonly owner: string | null;
  readonly epoch: number;
  /** The node that asks the owner for it; of the database alone. */
  readonly wanted_by: string | null;
  /** Over what is written with the cursor; see progressCheck. */
  readonly progress_check: number;
  readonly checksum: number;
}

/** One row a session; see the port's StoredSession. Times are in session time. */
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
  /** Over the two before; see stateCheck. */
  readonly state_check: number;
  readonly in_flight: Uint8Array;
  readonly in_flight_check: number;
  readonly expiry_ms: number;
  readonly will: Uint8Array | null;
  readonly will_delay_ms: number;
  readonly detached_at: number | null;
  readonly will_due_at: number | null;
  /** When its will or its end is due, whichever comes first; null while it is connected. */
  readonly due_at: number | null;
  readonly created_at: number;
  readonly checksum: number;
}

/** One row a filter of a session. `options`: the QoS, 4 for no local, 8 for retain as published. */
export interface SessionFilterTable {
  readonly subscription_id: string;
  readonly session_id: string;
  readonly filter: string;
  readonly options: number;
  readonly identifier: number | null;
  readonly starts_after: number;
  readonly checksum: number;
}

/** Milliseconds for which brokers have served each group. */
export interface SessionTimeTable {
  readonly group_id: string;
  readonly ms: number;
}

/** One row a member, while nodes share the database; times are milliseconds since the epoch by the database's clock. */
export interface NodeTable {
  readonly node_id: string;
  readonly address: string;
  readonly joined_at: number;
  readonly expires_at: number;
  /** Groups for which it can deliver, as a JSON list. */
  readonly groups: string;
}

/** The node that writes each group's index; the row stays when nobody does, so that epochs only grow. */
export interface GroupLeaseTable {
  readonly group_id: string;
  readonly node_id: string | null;
  readonly epoch: number;
}

/** The node that signs with each address. */
export interface SignerTable {
  readonly group_id: string;
  readonly sender: string;
  readonly node_id: string;
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

/** One row a transaction that may have been sent; see the Journal port. The last column holds every signed form of it. */
export interface JournalTable {
  readonly group_id: string;
  readonly sender: string;
  readonly nonce: number;
  readonly recorded_at: number;
  readonly variants: Uint8Array;
}

/** One row a publish that its producer has named by a key; see the PublishKeys port. */
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

/** Tables as the newest migration leaves them. */
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
  readonly sessions: SessionTable;
  readonly session_subscriptions: SessionFilterTable;
  readonly session_times: SessionTimeTable;
  readonly journal: JournalTable;
  readonly publish_keys: PublishKeyTable;
  readonly group_chains: GroupChainTable;
  readonly nodes: NodeTable;
  readonly group_leases: GroupLeaseTable;
  readonly signers: SignerTable;
}

/** How far one subscription is, as it is written. */
export type ProgressRow = Pick<
  SubscriptionTable,
  "id" | "epoch" | "cursor" | "notified_count" | "notified_at" | "failed_attempts" | "failed_ms" | "progress_check"
>;

/** `shared` keeps out those that want it `exclusive`, and only them. */
export type LockMode = "exclusive" | "shared";

/** Writes what a block changes, in a transaction of this database, however many topics that are. */
export interface RowWriter {
  /** Answers the keys of the new topics, in any order. */
  readonly insertTopics: (
    transaction: Transaction<Schema>,
    rows: readonly Omit<TopicRow, "topic_id">[],
  ) => Promise<readonly Pick<TopicRow, "topic_id" | "ordinal">[]>;
  /** Each topic once. */
  readonly updateTopics: (transaction: Transaction<Schema>, changes: readonly TopicChange[]) => Promise<void>;
  readonly insertBatches: (transaction: Transaction<Schema>, rows: readonly BatchTable[]) => Promise<void>;
}

/** An open database, seen with two promises about the disk. */
export interface SqlDatabase {
  /** What it commits is on disk when the commit answers. */
  readonly durable: Kysely<Schema>;
  /** What it commits is whole or absent after a power cut, and there after a kill. */
  readonly relaxed: Kysely<Schema>;
  /** Durable, and with time for changes of whole tables, or of a group's whole index. */
  readonly migrating: Kysely<Schema>;
  /** Whether other processes change it too, so that nothing that was read may be kept. */
  readonly isShared: boolean;
  /** From here to the end of the transaction nobody else holds the lock of this name in a way that excludes it, in any process. */
  readonly lock: (transaction: Transaction<Schema>, name: string, mode?: LockMode) => Promise<void>;
  /** Keeps the rows that a query answers from changes by others to the end of the transaction. */
  readonly locking: <Table extends keyof Schema, Row>(
    query: SelectQueryBuilder<Schema, Table, Row>,
  ) => SelectQueryBuilder<Schema, Table, Row>;
  /** Keeps a lease from being taken to the end of the transaction; answers false where it is not the newest. */
  readonly holdLease: (transaction: Transaction<Schema>, lease: GroupLease) => Promise<boolean>;
  /** Tells every process that listens, once the transaction is committed. */
  readonly notify: (transaction: Transaction<Schema>, hint: Hint) => Promise<void>;
  /** The values as a column that a query can ask for, however many they are. */
  readonly column: (values: readonly string[]) => RawBuilder<string>;
  /** The places as a table: topic, after, and place, their number from 0 on. */
  readonly places: (places: readonly TopicPlace[]) => RawBuilder<unknown>;
  readonly rowWriter: RowWriter;
  /** Moves cursors forward in one transaction of the relaxed kind; answers the ids of which there is no row of that epoch. */
  readonly saveProgress: (rows: readonly ProgressRow[]) => Promise<readonly string[]>;
  readonly countSubscriptions: () => Promise<number>;
  /** Finds every row of the small tables by each of their indexes, or builds those anew. @throws StoreError `corrupt`. */
  readonly checkTables: () => Promise<void>;
  /** Builds the indexes of the batches anew from their rows, in the transaction where one is given. */
  readonly reindexBatches: (transaction?: Transaction<Schema>) => Promise<void>;
  /** The failure of a database whose rows are not as they were written; it is reported. `what` names them. */
  readonly damaged: (what: string) => StoreError;
  close(): Promise<void>;
}

/** One kind of database. All that is particular to it stands behind this. */
export interface SqlBackend {
  /** What error messages call the database. */
  readonly description: string;
  readonly bytesType: "blob" | "bytea";
  /** Type of a primary key that the database counts up itself. */
  readonly keyType: "integer" | "bigserial";
  /** Type of a text whose order is that of its bytes, in every database. */
  readonly orderedTextType: "text" | 'text collate "C"';
  /** Has the database keep the number of subscriptions, where it is asked for often. */
  readonly keepCount?: (transaction: Kysely<Schema>) => Promise<void>;
  open(): Promise<SqlDatabase>;
}
