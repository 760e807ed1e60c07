import { type Kysely, sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import { parsePostgresAddress } from "./address.ts";
import { createPostgresBackend } from "./postgres-backend.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

describe.runIf(hasPostgres)(titleOf("sessions of PostgreSQL"), () => {
  let server: PostgresServer;
  let database: SqlDatabase;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["synchronous_commit=off"] });
  });
  beforeEach(async () => {
    const address = parsePostgresAddress(await server.createSchema());
    database = await createPostgresBackend({ address, logger: silentLogger, connectionsMax: 4 }).open();
  });
  afterEach(async () => database.close());
  afterAll(async () => server.remove());

  it("a durable commit waits for the disk and a relaxed one does not, in any order", async () => {
    const turns = [database.relaxed, database.durable, database.durable, database.relaxed, database.migrating];
    expect(await Promise.all(turns.map(settingInTransaction))).toEqual(["off", "on", "on", "off", "on"]);
    expect(await Promise.all(turns.map(async (on) => settingOf(on)))).toEqual(["on", "on", "on", "on", "on"]);
  });

  it("keeps the synchronous_commit of a role if it is stronger than on", async () => {
    await server.query("alter role stele set synchronous_commit = remote_apply");
    expect(await settingOf(database.durable)).toBe("remote_apply");
    await server.query("alter role stele reset synchronous_commit");
  });

  it("limits the time of statements, locks and idle transactions, and allows statements and locks of a migration more", async () => {
    const names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];
    const limits = async (on: Kysely<Schema>) => Promise.all(names.map(async (name) => settingOf(on, name)));
    expect(await limits(database.durable)).toEqual(["10s", "5s", "2s"]);
    const within = await database.migrating.transaction().execute(async (transaction) => limits(transaction));
    expect(within).toEqual(["10min", "10min", "2s"]);
    expect(await limits(database.migrating)).toEqual(["10s", "5s", "2s"]);
  });

  it("returns integers up to 2^53 - 1 as numbers, refuses others as damage, and returns bytes unchanged", async () => {
    const read = async (value: unknown) =>
      (await sql<{ v: unknown }>`select ${value}::bigint as v`.execute(database.relaxed)).rows;
    for (const value of [0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])
      expect(await read(value)).toEqual([{ v: value }]);
    await expect(read("9007199254740992")).rejects.toMatchObject({
      name: "StoreError",
      fault: "corrupt",
      message: expect.stringContaining("9007199254740992"),
    });
    expect(await read(1)).toEqual([{ v: 1 }]);
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const { rows } = await sql<{ v: Uint8Array }>`select ${bytes.subarray(1)}::bytea as v`.execute(database.relaxed);
    expect(rows[0]?.v).toEqual(bytes.subarray(1));
    expect(Buffer.isBuffer(rows[0]?.v)).toBe(false);
  });

  it("a failed transaction leaves no row, and the next statement works", async () => {
    await sql`create table t (a bigint primary key)`.execute(database.durable);
    const failing = database.durable.transaction().execute(async (transaction) => {
      await sql`insert into t values (1)`.execute(transaction);
      await sql`insert into t values (1)`.execute(transaction);
    });
    await expect(failing).rejects.toMatchObject({ name: "StoreError", fault: "other" });
    await sql`insert into t values (1)`.execute(database.durable);
  });

  it("a transaction that swallows the failure of a statement is reported as failed", async () => {
    const hiding = database.durable.transaction().execute(async (transaction) => {
      await sql`select 1 / 0`.execute(transaction).catch(() => {});
    });
    await expect(hiding).rejects.toMatchObject({
      name: "StoreError",
      message: expect.stringContaining("undid a transaction"),
    });
    expect(await settingOf(database.durable)).toBe("on");
  });

  it("a transaction holds a lock until it ends, without blocking locks of other names", async () => {
    const seen: string[] = [];
    const held = async (lock: string, name: string) =>
      database.relaxed.transaction().execute(async (transaction) => {
        await database.lock(transaction, lock);
        seen.push(`${name} begins`);
        await sql`select pg_sleep(0.1)`.execute(transaction);
        seen.push(`${name} ends`);
      });
    await Promise.all([held("x", "first"), held("x", "second")]);
    expect([seen[0]?.split(" ")[0], seen[1]?.split(" ")[0]]).toEqual(Array(2).fill(seen[0]?.split(" ")[0]));
    await database.relaxed.transaction().execute(async (transaction) => {
      await database.lock(transaction, "x");
      await held("y", "other");
    });
  });

  it("the database can be closed twice, and refuses calls afterwards", async () => {
    await database.close();
    await database.close();
    await expect(settingOf(database.relaxed)).rejects.toMatchObject({ name: "StoreError" });
  });
});

async function settingInTransaction(on: Kysely<Schema>): Promise<string | undefined> {
  return on.transaction().execute(async (transaction) => settingOf(transaction));
}

async function settingOf(on: Kysely<Schema>, name = "synchronous_commit"): Promise<string | undefined> {
  const { rows } = await sql<{ setting: string }>`select current_setting(${name}) as setting`.execute(on);
  return rows[0]?.setting;
}
