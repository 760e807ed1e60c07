import { readFileSync, renameSync, statSync } from "node:fs";
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { temporaryFile } from "../../temporary-file.contract.ts";
import { prepare } from "../prepared.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import { openNative } from "./native.ts";
import { SqliteSession, statementsCachedMax } from "./session.ts";
import { createSqliteBackend } from "./sqlite-backend.ts";

describe("the SQLite session", () => {
  let file: string;
  let database: SqlDatabase;
  beforeEach(async () => {
    file = temporaryFile();
    database = await createSqliteBackend(file).open();
  });
  afterEach(async () => database.close());

  it("sets synchronous=full for durable commits and normal for relaxed ones, in any order", async () => {
    const inTransaction = async (on: Kysely<Schema>) => on.transaction().execute(synchronousOf);
    expect(await inTransaction(database.durable)).toBe(2);
    expect(await inTransaction(database.relaxed)).toBe(1);
    expect(await synchronousOf(database.durable)).toBe(2);
    expect(await synchronousOf(database.relaxed)).toBe(1);
    const turns = [database.relaxed, database.durable, database.urgent, database.relaxed, database.durable];
    expect(await Promise.all(turns.map(inTransaction))).toEqual([1, 2, 2, 1, 2]);
  });

  it("uses a write-ahead log and a file that only its owner can read", async () => {
    const { rows } = await sql<{ journal_mode: string }>`pragma journal_mode`.execute(database.relaxed);
    expect(rows).toEqual([expect.objectContaining({ journal_mode: "wal" })]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("runs one transaction at a time, in the order of the requests", async () => {
    const seen: string[] = [];
    const turn = (name: string) =>
      database.relaxed.transaction().execute(async (transaction) => {
        seen.push(`${name} begins`);
        await sql`select 1`.execute(transaction);
        seen.push(`${name} ends`);
      });
    await Promise.all(["a", "b", "c"].map(turn));
    expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  });

  it("runs relaxed and urgent transactions before durable ones that came earlier and still wait", async () => {
    const seen: string[] = [];
    const turn = async (on: Kysely<Schema>, name: string): Promise<void> => {
      await sql`select 1`.execute(on);
      seen.push(name);
    };
    const { durable, relaxed, urgent } = database;
    const turns = [turn(durable, "durable 1"), turn(durable, "durable 2"), turn(durable, "durable 3")];
    turns.push(turn(relaxed, "relaxed"), turn(urgent, "urgent"));
    await Promise.all(turns);
    expect(seen).toEqual(["durable 1", "relaxed", "urgent", "durable 2", "durable 3"]);
  });

  it("a failed transaction leaves no row, and the next statement works", async () => {
    await sql`create table t (a bigint primary key)`.execute(database.durable);
    const failing = database.durable.transaction().execute(async (transaction) => {
      await sql`insert into t values (1)`.execute(transaction);
      await sql`insert into t values (1)`.execute(transaction);
    });
    await expect(failing).rejects.toMatchObject({ name: "StoreError", fault: "other" });
    await sql`insert into t values (1)`.execute(database.durable);
    const { rows } = await sql<{ n: number }>`select count(*) as n from t`.execute(database.relaxed);
    expect(rows[0]?.n).toBe(1);
  });

  it("prepares a frequent statement only once, even after many statements that ran once", async () => {
    const native = await openNative(temporaryFile());
    const prepare = vi.spyOn(native, "prepare");
    const session = new SqliteSession(native, { description: "", onFault: () => {}, keepsLog: () => false });
    const run = (number: number) => session.executeQuery({ sql: `select ${number}`, parameters: [] });
    for (let number = 1; number <= statementsCachedMax; number += 1) await run(number);
    for (let use = 0; use < 10; use += 1) await run(0);
    expect(prepare.mock.calls.filter(([text]) => text === "select 0").length).toBe(1);
    await session.close();
  });

  it.each(["", "returning a"])(
    "executeEach returns the rows, and reports SQLite's code if one fails: insert %s",
    async (returning) => {
      const native = await openNative(temporaryFile());
      native.exec("create table t (a bigint primary key)");
      const session = new SqliteSession(native, { description: "store", onFault: () => {}, keepsLog: () => false });
      const insert = prepare(({ a }: { readonly a: number }) => {
        const query = sql`insert into t values (${a}) ${sql.raw(returning)}`;
        return { compile: () => query.compile(database.relaxed) };
      });
      const values = [{ a: 1 }, { a: 2 }];
      native.exec("begin");
      expect(await session.executeEach(insert, values)).toEqual(returning === "" ? [] : values);
      await expect(session.executeEach(insert, [{ a: 2 }])).rejects.toMatchObject({
        name: "StoreError",
        fault: "other",
      });
      native.exec("rollback");
      await session.close();
    },
  );

  it("close waits for all callers that came before", async () => {
    const native = await openNative(temporaryFile());
    const session = new SqliteSession(native, { description: "", onFault: () => {}, keepsLog: () => false });
    const run = async (speed: "quick" | "slow"): Promise<void> => {
      await session.acquire("FULL", speed);
      await session.executeQuery({ sql: "select 1", parameters: [] });
      session.release();
    };
    const all = [run("quick"), run("quick"), run("slow"), run("quick"), session.close()];
    await Promise.all(all);
  });

  it("the database can be closed twice, and refuses calls afterwards", async () => {
    await database.close();
    await database.close();
    await expect(synchronousOf(database.relaxed)).rejects.toThrow("not open");
  });
});

async function synchronousOf(on: Kysely<Schema>): Promise<number | undefined> {
  const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(on);
  return rows[0]?.synchronous;
}

it("close fails if the file was replaced, and leaves the log of either file unchanged", async () => {
  const [file, other] = [temporaryFile(), temporaryFile()];
  await (await openWithTable(other, true)).close();
  const before = ["", "-wal"].map((suffix) => readFileSync(`${other}${suffix}`));
  const database = await openWithTable(file, false);
  for (const suffix of ["", "-wal"]) {
    renameSync(`${file}${suffix}`, `${file}.away${suffix}`);
    renameSync(`${other}${suffix}`, `${file}${suffix}`);
  }
  await expect(database.close()).rejects.toThrow(`${file} was moved, deleted or replaced`);
  expect(["", "-wal"].map((suffix) => readFileSync(`${file}${suffix}`))).toEqual(before);
  expect(statSync(`${file}.away-wal`).size).toBeGreaterThan(0);
});

async function openWithTable(path: string, keepsLog: boolean): Promise<SqlDatabase> {
  const database = await createSqliteBackend(path, { keepsLog: () => keepsLog }).open();
  await sql`create table t (a bigint primary key)`.execute(database.durable);
  return database;
}
