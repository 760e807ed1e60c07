import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import type { StoredSession } from "../../../ports/session-store.ts";
import { lastPosition } from "../../../domain/position.ts";
import { everyByte, subscriptionOf } from "../../../ports/store-examples.contract.ts";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { claimOf, filterOf, idOf, position } from "../../../ports/session-examples.contract.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import { fromFilterRow, fromSessionRow, startCheck, toFilterRow, toSessionRow } from "../sessions/session-rows.ts";
import { parsePostgresAddress } from "../postgres/address.ts";
import { createPostgresBackend } from "../postgres/postgres-backend.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "../postgres/testing/postgres-server.ts";
import { toSubscriptionRow } from "../rows.ts";
import type { Schema, SessionTable, SqlBackend, SqlDatabase } from "../schema.ts";
import { createSqliteBackend } from "../sqlite/sqlite-backend.ts";

describe("migrations of SQLite", () => testMigrations(async () => createSqliteBackend(temporaryFile())));

describe.runIf(hasPostgres)(titleOf("migrations of PostgreSQL"), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());
  const createBackend = async () => {
    const address = parsePostgresAddress(await server.createSchema());
    return createPostgresBackend({ address, logger: silentLogger, connectionsMax: 2 });
  };
  testMigrations(createBackend);

  it("removes the triggers that counted subscriptions, and keeps the count as a view for nodes of the earlier version", async () => {
    const backend = await createBackend();
    await using database = closing(await backend.open());
    await migrate(database.open, backend, 3);
    await maintainCount(database.open.migrating);
    await migrate(database.open, backend);
    const { durable } = database.open;
    const { rows: triggers } = await sql`
      select from pg_trigger where tgrelid = 'subscriptions'::regclass and not tgisinternal`.execute(durable);
    expect(triggers).toEqual([]);
    await durable
      .insertInto("subscriptions")
      .values(toSubscriptionRow(subscriptionOf(1)))
      .execute();
    expect((await sql`select sum(count)::bigint as count from subscription_counts`.execute(durable)).rows).toEqual([
      { count: 1 },
    ]);
  });
});

function closing(open: SqlDatabase) {
  return { open, [Symbol.asyncDispose]: async () => open.close() };
}

/** Creates the table, and one of the triggers, of the earlier version. */
async function maintainCount(database: Kysely<Schema>): Promise<void> {
  await sql`create table subscription_counts (slot integer primary key, count bigint not null)`.execute(database);
  await sql`create function count_subscriptions() returns trigger language plpgsql as $$ begin return null; end $$`.execute(
    database,
  );
  await sql`create trigger subscriptions_made after insert on subscriptions
    referencing new table as made for each statement execute function count_subscriptions()`.execute(database);
}

/** The first schema version in which a filter's checksum covers its start. */
const coversStarts = 8;

/** The first schema version with a session's last position outside the stream. */
const storesOutside = 16;

function sessionOfClaim(): StoredSession {
  const { will, willDelayMs, expiryMs, principal, owner, key, protocol, groupId } = claimOf();
  const progress = { cursor: position, taken: position, outside: lastPosition, inFlight: everyByte };
  const times = { detachedAt: undefined, willDueAt: undefined, createdAt: 5 };
  const names = { id: idOf(1), epoch: 7, key, protocol, groupId };
  return { ...names, ...progress, ...times, will, willDelayMs, expiryMs, principal, owner };
}

function testMigrations(create: () => Promise<SqlBackend>): void {
  let backend: SqlBackend;
  beforeEach(async () => {
    backend = await create();
  });

  async function onDatabase(action: (database: SqlDatabase) => Promise<void>): Promise<void> {
    const database = await backend.open();
    try {
      await action(database);
    } finally {
      await database.close();
    }
  }

  it.each([0, 3, 8])(
    "refuses tables of the newest version whose damaged version row says %i, and names the remedy",
    async (version) => {
      const backend = await create();
      await using database = closing(await backend.open());
      await migrate(database.open, backend);
      await sql`update schema_version set version = ${version}`.execute(database.open.durable);
      await expect(migrate(database.open, backend)).rejects.toMatchObject({
        fault: "corrupt",
        message: expect.stringMatching(/does not fit its tables; restore/),
      });
    },
  );

  it("migrates a store of the first version and keeps its rows", async () => {
    await onDatabase(async (database) => {
      await migrate(database, backend, 1);
      const head = { group_id: "1", block_number: 7, block_hash: "0x", generation: 0, batch_count: 0, checksum: 0 };
      await database.relaxed.insertInto("groups").values(head).execute();
      expect(await migrate(database, backend)).toBe(1);
      expect(await database.relaxed.selectFrom("groups").selectAll().execute()).toEqual([head]);
      expect(await database.relaxed.selectFrom("retained").selectAll().execute()).toEqual([]);
    });
  });

  it("keeps a session's filter from a version whose checksums did not cover the start of filters", async () => {
    await onDatabase(async (database) => {
      const row = toFilterRow("session", filterOf(1));
      await migrate(database, backend, coversStarts - 1);
      const before = { ...row, checksum: row.checksum - startCheck(row.starts_after) };
      await database.relaxed.insertInto("session_subscriptions").values(before).execute();
      await migrate(database, backend);
      const [kept] = await database.relaxed.selectFrom("session_subscriptions").selectAll().execute();
      expect(kept && fromFilterRow(kept)).toEqual(filterOf(1));
    });
  });

  it("keeps a session from a schema version without the column `outside`", async () => {
    await onDatabase(async (database) => {
      const session = sessionOfClaim();
      await migrate(database, backend, storesOutside - 1);
      const { outside: _, outside_check: __, ...before } = toSessionRow(session);
      const insert = (row: Omit<SessionTable, "outside" | "outside_check">) =>
        database.relaxed
          .insertInto("sessions")
          .values(row as SessionTable) // Without two columns.
          .execute();
      await insert(before);
      await migrate(database, backend);
      const later = { ...session, id: idOf(2), key: "later" };
      const { outside: ___, outside_check: ____, ...row } = toSessionRow(later);
      await insert(row);
      const rows = await database.relaxed.selectFrom("sessions").selectAll().orderBy("session_id").execute();
      expect(rows.map(fromSessionRow)).toEqual([session, later]);
    });
  });

  it("ignores a session's stored position outside the stream once a node of an earlier version has written the session's row", async () => {
    await onDatabase(async (database) => {
      await migrate(database, backend);
      const row = toSessionRow({ ...sessionOfClaim(), outside: position });
      await database.relaxed.insertInto("sessions").values(row).execute();
      const { in_flight, in_flight_check } = toSessionRow({ ...sessionOfClaim(), inFlight: everyByte.slice(1) });
      const read = async () => {
        const [found] = await database.relaxed.selectFrom("sessions").selectAll().execute();
        return found && fromSessionRow(found)?.outside;
      };
      expect(await read()).toBe(position);
      await database.relaxed.updateTable("sessions").set({ in_flight, in_flight_check }).execute();
      expect(await read()).toBe(lastPosition);
    });
  });

  it("leaves a store of the newest version unchanged and repeats no step", async () => {
    await onDatabase(async (database) => {
      expect(await migrate(database, backend)).toBe(0);
      expect(await migrate(database, backend)).toBe(schemaVersion);
      expect(await database.relaxed.selectFrom("schema_version").selectAll().execute()).toEqual([
        { version: schemaVersion },
      ]);
    });
  });
}
