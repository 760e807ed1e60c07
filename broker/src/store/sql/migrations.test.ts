import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import { temporaryFile } from "../temporary-file.contract.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import { parsePostgresAddress } from "./postgres/address.ts";
import { createPostgresBackend } from "./postgres/postgres-backend.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./postgres/testing/postgres-server.ts";
import type { SqlBackend, SqlDatabase } from "./schema.ts";
import { createSqliteBackend } from "./sqlite/sqlite-backend.ts";

describe("migrations of SQLite", () => testMigrations(async () => createSqliteBackend(temporaryFile())));

describe.runIf(hasPostgres)(titleOf("migrations of PostgreSQL"), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());
  testMigrations(async () => {
    const address = parsePostgresAddress(await server.createSchema());
    return createPostgresBackend({ address, logger: silentLogger, connectionsMax: 2 });
  });
});

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
