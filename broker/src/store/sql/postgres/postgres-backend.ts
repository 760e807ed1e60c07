import type { Duplex } from "node:stream";
import { Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { Logger } from "../../../lib/logger.ts";
import type { TopicPosition } from "../../../ports/store.ts";
import type { Schema, SqlBackend, SqlDatabase } from "../schema.ts";
import type { StoreError } from "../store-error.ts";
import type { PostgresAddress } from "./address.ts";
import { ClearTextReport } from "./clear-text-report.ts";
import { sendHints } from "./coordination/hint-text.ts";
import { SharedPoolDialect } from "./dialect.ts";
import { damagedIndex } from "./errors.ts";
import { idleInTransactionMsMax, lockMsMax, migrationMsMax, statementMsMax, urgentConnectionsMax } from "./limits.ts";
import { dropMaintainedCount } from "./maintained-count.ts";
import { ConnectionPool } from "./pool.ts";
import { rowWriter } from "./row-writer.ts";
import { saveProgress } from "./save-progress.ts";
import type { SessionLimits } from "./session.ts";
import { SharedLocks } from "./shared-locks.ts";
import { holdLease, lockByName, lockByNames } from "./sharing.ts";

export interface PostgresBackendOptions {
  readonly address: PostgresAddress;
  readonly logger: Logger;
  /** Maximum number of connections of this backend, besides {@link urgentConnectionsMax}. */
  readonly connectionsMax: number;
  /** Overrides of the usual limits of sessions. */
  readonly session?: Partial<SessionLimits>;
  /** Called when data is damaged. The damage lasts until the operator repairs it, or until a start rebuilds the index. */
  readonly onFault?: ((error: StoreError) => void) | undefined;
}

const usualLimits: SessionLimits = { statementMsMax, lockMsMax, idleInTransactionMsMax };

/** PostgreSQL, which any number of processes may share. */
export function createPostgresBackend(options: PostgresBackendOptions): SqlBackend {
  const { description } = options.address;
  const open = async (): Promise<SqlDatabase> => openPostgres(options);
  const types = { bytesType: "bytea", keyType: "bigserial", orderedTextType: 'text collate "C"' } as const;
  return { description, ...types, dropMaintainedCount, open };
}

async function openPostgres({ session, ...options }: PostgresBackendOptions): Promise<SqlDatabase> {
  const limits = { ...usualLimits, ...session };
  // Warns about connections without TLS. The coordinator's connections are not checked: they use the same address, so they would only repeat the warning.
  const clearText = new ClearTextReport(options.logger, options.address.description);
  const onSession = (stream: Duplex): void => clearText.saw(stream);
  const pool = new ConnectionPool({ name: "store", ...options, session: limits, onSession });
  const reserved = new ConnectionPool({
    ...options,
    name: "urgent writes",
    connectionsMax: urgentConnectionsMax,
    session: limits,
    onSession,
  });
  const open = (settings: string, msMax: number, source: Pick<ConnectionPool, "connect"> = pool) =>
    new Kysely<Schema>({ dialect: new SharedPoolDialect(source, { settings, statementMsMax: msMax }) });
  const connectUrgently: ConnectionPool["connect"] = async (msMax) => (pool.isFull ? reserved : pool).connect(msMax);
  const migrationLimits = `set local statement_timeout = ${migrationMsMax}; set local lock_timeout = ${migrationMsMax}`;
  const durable = open("", limits.statementMsMax);
  const relaxed = open("set local synchronous_commit = off", limits.statementMsMax);
  const migrating = open(migrationLimits, migrationMsMax);
  const shared = new SharedLocks({
    description: options.address.description,
    wait: (name) => durable.transaction().execute((transaction) => lockByName(transaction, name, "shared")),
  });
  return {
    durable,
    urgent: open("", limits.statementMsMax, { connect: connectUrgently }),
    relaxed,
    migrating,
    isShared: true,
    lock: (transaction, name, mode) =>
      mode === "shared" ? shared.take(transaction, name) : lockByName(transaction, name, mode),
    lockAll: lockByNames,
    locking: (query) => query.forUpdate(),
    holdLease,
    notify: sendHints,
    byBytes: (column) => sql<string>`${sql.ref(column)} collate "C"`,
    column: (values) => sql<string>`(select unnest(${values}::text[]))`,
    places: placesTable,
    rowWriter,
    saveProgress: async (rows, letters) => saveProgress(durable, rows, letters),
    checkTables: async () => undefined,
    checkEmptied: async () => {},
    reindexBatches: async (transaction) => {
      if (transaction === undefined) await migrating.transaction().execute(reindexBatches);
      else await reindexBatches(transaction);
    },
    damaged: (what) => {
      const error = damagedIndex(options.address.description, what);
      options.onFault?.(error);
      return error;
    },
    close: async () => void (await Promise.all([pool.end(), reserved.end()])),
  };
}

async function reindexBatches(transaction: Transaction<Schema>): Promise<void> {
  await sql`reindex table batches`.execute(transaction);
}

function placesTable(places: readonly TopicPosition[]): RawBuilder<unknown> {
  const topics = places.map(({ topic }) => topic);
  const positions = places.map(({ after }) => after);
  return sql`(
    select topic, after, number - 1 as place
    from unnest(${topics}::text[], ${positions}::bigint[]) with ordinality as given (topic, after, number)
  )`;
}
