import { type Kysely, sql } from "kysely";
import { addDeliveryOptions } from "./add-delivery-options.ts";
import { addRetryTimes } from "./add-retry-times.ts";
import { coverRows } from "./cover-rows.ts";
import { createDeadLetters } from "./create-dead-letters.ts";
import { createShares } from "./create-shares.ts";
import { indexOwners } from "./index-owners.ts";
import { startCheckSql } from "../sessions/session-rows.ts";
import type { Schema, SqlBackend, SqlDatabase } from "../schema.ts";
import { StoreError } from "../store-error.ts";

type Migration = (database: Kysely<Schema>, backend: SqlBackend) => Promise<void>;

/** The n-th entry brings a database from version n-1 to n. Entries are only ever added. */
const migrations: readonly Migration[] = [
  createTables,
  createPublishKeys,
  createRetained,
  indexDetached,
  addSubscriptionPrincipal,
  dropMaintainedCount,
  createShares,
  coverStarts,
  addGivenEpoch,
  coverRows,
  indexOwners,
  addRetryTimes,
  addDeliveryOptions,
  createDeadLetters,
  addSkippedSender,
  addOutside,
];

/** Newest version that this program knows. */
export const schemaVersion = migrations.length;

/**
 * Brings the tables to a version, by default the newest, in one transaction; returns the version they had. Refuses tables of a newer
 * program.
 */
export async function migrate(database: SqlDatabase, backend: SqlBackend, target = schemaVersion): Promise<number> {
  return database.migrating.transaction().execute(async (transaction) => {
    await database.lock(transaction, "migration");
    await transaction.schema.createTable("schema_version").ifNotExists().addColumn("version", "integer").execute();
    const row = await transaction.selectFrom("schema_version").select("version").executeTakeFirst();
    const version = row?.version ?? 0;
    if (version > schemaVersion) throw newerThanKnown(version, backend);
    if (version >= target) return version;
    try {
      for (const migration of migrations.slice(version, target)) await migration(transaction, backend);
    } catch (error) {
      if (error instanceof StoreError && error.fault === "other") throw otherThanTables(version, backend, error);
      throw error;
    }
    await transaction.deleteFrom("schema_version").execute();
    await transaction.insertInto("schema_version").values({ version: target }).execute();
    return version;
  });
}

/** The error for a migration whose statement failed with the fault `other`: the version row does not fit the tables. */
function otherThanTables(version: number, { description }: SqlBackend, cause: StoreError): StoreError {
  const remedy =
    "restore the database from a backup, or move it away: the broker then rebuilds the index from the chain, and subscriptions are lost";
  const found = `its schema version ${version} does not fit its tables`;
  return new StoreError("corrupt", `${description} is damaged: ${found}; ${remedy} (${cause.message})`, cause);
}

function newerThanKnown(version: number, backend: SqlBackend): StoreError {
  return new StoreError(
    "newer",
    `${backend.description} was written by a newer version (its schema is ${version}, this program knows up to ${schemaVersion}): ` +
      "run that version again, or start with an empty store",
  );
}

async function createTables(database: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await createGroups(database);
  await createTopics(database, backend);
  await createBatches(database, backend);
  await createBlocks(database);
  await createVanished(database, backend);
  await createSkippedEntries(database);
  await createSubscriptions(database);
  await createSessions(database, backend);
  await createJournal(database, backend);
  await createGroupChains(database);
  await createCoordination(database);
}

async function createGroups({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("groups")
    .addColumn("group_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("block_number", "bigint", (column) => column.notNull())
    .addColumn("block_hash", "text", (column) => column.notNull())
    .addColumn("generation", "bigint", (column) => column.notNull())
    .addColumn("batch_count", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .execute();
}

async function createTopics({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("topics")
    .addColumn("topic_id", backend.keyType, (column) => column.primaryKey())
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("ordinal", "bigint", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("sender", "text", (column) => column.notNull())
    .addColumn("created_timestamp", "bigint", (column) => column.notNull())
    .addColumn("sequence", "bigint", (column) => column.notNull())
    .addColumn("block_number", "bigint", (column) => column.notNull())
    .addColumn("closed", "integer", (column) => column.notNull())
    .addColumn("event_count", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addUniqueConstraint("topics_by_ordinal", ["group_id", "ordinal"])
    .addUniqueConstraint("topics_by_name", ["group_id", "name"])
    .addUniqueConstraint("topics_by_address", ["group_id", "address"])
    .execute();
  await schema.createIndex("topics_by_digest").on("topics").columns(["group_id", "digest", "ordinal"]).execute();
}

async function createBatches({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("batches")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("ordinal", "bigint", (column) => column.notNull())
    .addColumn("first_position", "bigint", (column) => column.notNull())
    .addColumn("last_position", "bigint", (column) => column.notNull())
    .addColumn("topic_id", "bigint", (column) => column.notNull())
    .addColumn("first_sequence", "bigint", (column) => column.notNull())
    .addColumn("events_before", "bigint", (column) => column.notNull())
    .addColumn("byte_count", "bigint", (column) => column.notNull())
    .addColumn("transaction_hash", "text", (column) => column.notNull())
    .addColumn("log_index", "bigint", (column) => column.notNull())
    .addColumn("publisher", "text", (column) => column.notNull())
    .addColumn("events_checksum", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addColumn("events", backend.bytesType, (column) => column.notNull())
    .addPrimaryKeyConstraint("batches_by_position", ["group_id", "last_position"])
    .addUniqueConstraint("batches_by_topic_position", ["topic_id", "last_position"])
    .addUniqueConstraint("batches_by_topic_sequence", ["topic_id", "first_sequence"])
    .execute();
}

async function createBlocks({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("blocks")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("number", "bigint", (column) => column.notNull())
    .addColumn("hash", "text", (column) => column.notNull())
    .addColumn("undo", "text", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("blocks_by_number", ["group_id", "number"])
    .execute();
}

async function createVanished({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("vanished")
    .addColumn("vanished_id", backend.keyType, (column) => column.primaryKey())
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("topic", "text", (column) => column.notNull())
    .addColumn("first_sequence", "bigint", (column) => column.notNull())
    .addColumn("first_position", "bigint", (column) => column.notNull())
    .addColumn("last_position", "bigint", (column) => column.notNull())
    .addColumn("transaction_hash", "text", (column) => column.notNull())
    .addColumn("log_index", "bigint", (column) => column.notNull())
    .execute();
  await schema
    .createIndex("vanished_by_place")
    .on("vanished")
    .columns(["group_id", "digest", "last_position"])
    .execute();
}

async function createSkippedEntries({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("skipped_entries")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("block_number", "bigint", (column) => column.notNull())
    .addColumn("log_index", "bigint", (column) => column.notNull())
    .addColumn("code", "text", (column) => column.notNull())
    .addColumn("reason", "text", (column) => column.notNull())
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("transaction_hash", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("skipped_entries_by_place", ["group_id", "block_number", "log_index"])
    .execute();
}

async function createSubscriptions({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("subscriptions")
    .addColumn("id", "text", (column) => column.primaryKey().notNull())
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("filter", "text", (column) => column.notNull())
    .addColumn("interface_type", "text", (column) => column.notNull())
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("receiver", "text")
    .addColumn("secret", "text")
    .addColumn("state", "text", (column) => column.notNull())
    .addColumn("cursor", "bigint", (column) => column.notNull())
    .addColumn("notified_count", "bigint", (column) => column.notNull())
    .addColumn("notified_at", "bigint", (column) => column.notNull())
    .addColumn("failed_attempts", "bigint", (column) => column.notNull())
    .addColumn("failed_ms", "bigint", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("owner", "text")
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("wanted_by", "text")
    .addColumn("progress_check", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .execute();
  await schema.createIndex("subscriptions_by_owner").on("subscriptions").columns(["owner", "id"]).execute();
  await schema.createIndex("subscriptions_by_receiver").on("subscriptions").column("receiver").execute();
}

async function createSessions({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("sessions")
    .addColumn("session_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("interface_type", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("principal", "text", (column) => column.notNull())
    .addColumn("owner", "text")
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .addColumn("cursor", "bigint", (column) => column.notNull())
    .addColumn("taken", "bigint", (column) => column.notNull())
    .addColumn("state_check", "bigint", (column) => column.notNull())
    .addColumn("in_flight", backend.bytesType, (column) => column.notNull())
    .addColumn("in_flight_check", "bigint", (column) => column.notNull())
    .addColumn("expiry_ms", "bigint", (column) => column.notNull())
    .addColumn("will", backend.bytesType)
    .addColumn("will_delay_ms", "bigint", (column) => column.notNull())
    .addColumn("detached_at", "bigint")
    .addColumn("will_due_at", "bigint")
    .addColumn("due_at", "bigint")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addUniqueConstraint("sessions_by_key", ["group_id", "interface_type", "key"])
    .execute();
  await schema.createIndex("sessions_by_owner").on("sessions").column("owner").execute();
  await schema.createIndex("sessions_by_due").on("sessions").columns(["group_id", "due_at"]).execute();
  await schema
    .createTable("session_subscriptions")
    .addColumn("subscription_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("session_id", "text", (column) => column.notNull())
    .addColumn("filter", "text", (column) => column.notNull())
    .addColumn("options", "integer", (column) => column.notNull())
    .addColumn("identifier", "bigint")
    .addColumn("starts_after", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addUniqueConstraint("session_subscriptions_by_filter", ["session_id", "filter"])
    .execute();
  await schema
    .createTable("session_times")
    .addColumn("group_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("ms", "bigint", (column) => column.notNull())
    .execute();
}

async function createJournal({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("journal")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("sender", "text", (column) => column.notNull())
    .addColumn("nonce", "bigint", (column) => column.notNull())
    .addColumn("recorded_at", "bigint", (column) => column.notNull())
    .addColumn("variants", backend.bytesType, (column) => column.notNull())
    .addPrimaryKeyConstraint("journal_by_nonce", ["group_id", "sender", "nonce"])
    .execute();
}

async function createPublishKeys({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("publish_keys")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("scope", "text", (column) => column.notNull())
    .addColumn("key", "text", (column) => column.notNull())
    .addColumn("token", "text", (column) => column.notNull())
    .addColumn("topic", "text", (column) => column.notNull())
    .addColumn("after_position", "bigint", (column) => column.notNull())
    .addColumn("digest", "text", (column) => column.notNull())
    .addColumn("sender", "text", (column) => column.notNull())
    .addColumn("recorded_at", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("publish_keys_by_key", ["group_id", "scope", "key"])
    .execute();
  await schema.createIndex("publish_keys_by_time").on("publish_keys").columns(["group_id", "recorded_at"]).execute();
}

async function createGroupChains({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("group_chains")
    .addColumn("group_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("chain_id", "bigint", (column) => column.notNull())
    .addColumn("genesis_hash", "text", (column) => column.notNull())
    .addColumn("registry_address", "text", (column) => column.notNull())
    .addColumn("writers", "bigint")
    .addColumn("writers_owner", "text")
    .execute();
}

async function createCoordination({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .createTable("nodes")
    .addColumn("node_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("address", "text", (column) => column.notNull().unique())
    .addColumn("joined_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .addColumn("groups", "text", (column) => column.notNull())
    .execute();
  await schema
    .createTable("group_leases")
    .addColumn("group_id", "text", (column) => column.primaryKey().notNull())
    .addColumn("node_id", "text")
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .execute();
  await schema
    .createTable("signers")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("sender", "text", (column) => column.notNull())
    .addColumn("node_id", "text", (column) => column.notNull())
    .addPrimaryKeyConstraint("signers_by_sender", ["group_id", "sender"])
    .execute();
}

async function createRetained({ schema }: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await schema
    .createTable("retained")
    .addColumn("group_id", "text", (column) => column.notNull())
    .addColumn("name", sql.raw(backend.orderedTextType), (column) => column.notNull())
    .addColumn("sequence", "bigint", (column) => column.notNull())
    .addColumn("position", "bigint", (column) => column.notNull())
    .addColumn("checksum", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("retained_by_name", ["group_id", "name"])
    .execute();
}

async function indexDetached({ schema }: Kysely<Schema>): Promise<void> {
  await schema.createIndex("sessions_by_detached").on("sessions").columns(["group_id", "detached_at"]).execute();
}

async function addSubscriptionPrincipal({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable("subscriptions").addColumn("principal", "text").execute();
}

/** `returnShared` undoes a take whose outcome its node does not know. Existing rows get -1, which it never matches. */
async function addGivenEpoch({ schema }: Kysely<Schema>): Promise<void> {
  await schema
    .alterTable("share_events")
    .addColumn("given_epoch", "bigint", (column) => column.notNull().defaultTo(-1))
    .execute();
}

async function addSkippedSender({ schema }: Kysely<Schema>): Promise<void> {
  await schema.alterTable("skipped_entries").addColumn("sender", "text").execute();
}

/** Rows of earlier versions get a check that never matches, including rows that a node of an earlier version inserts after the migration. */
async function addOutside({ schema }: Kysely<Schema>): Promise<void> {
  for (const [name, value] of [
    ["outside", 0],
    ["outside_check", -1],
  ] as const)
    await schema
      .alterTable("sessions")
      .addColumn(name, "bigint", (column) => column.notNull().defaultTo(value))
      .execute();
}

async function dropMaintainedCount(database: Kysely<Schema>, backend: SqlBackend): Promise<void> {
  await backend.dropMaintainedCount?.(database);
}

/** Extends the checksums of existing rows to the start of the filter. */
async function coverStarts(database: Kysely<Schema>): Promise<void> {
  await database
    .updateTable("session_subscriptions")
    .set({ checksum: sql<number>`checksum + ${startCheckSql}` })
    .execute();
}
