import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client } from "pg";
import { EmptiedSchemas } from "./emptied-schemas.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./postgres-server.ts";

describe.runIf(hasPostgres)(titleOf("EmptiedSchemas"), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());

  it("returns a former schema without its rows, or a new schema if a session still locks the former one", async () => {
    await using schemas = await EmptiedSchemas.connect(server, 100);
    const url = await schemas.take();
    await server.query("create table things (name text)", [], url);
    await server.query("insert into things values ('a')", [], url);
    schemas.release();
    expect(await schemas.take()).toBe(url);
    expect(await server.query("select * from things", [], url)).toEqual([]);
    schemas.release();
    const holder = new Client({ connectionString: url });
    await holder.connect();
    await holder.query("begin; lock table things in access exclusive mode");
    expect(await schemas.take()).not.toBe(url);
    await holder.end();
  });

  it("`take` rejects after the connection was lost", async () => {
    await using schemas = await EmptiedSchemas.connect(server);
    await schemas.take();
    schemas.release();
    const others = "pid <> pg_backend_pid() and backend_type = 'client backend'";
    await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${others}`);
    await expect(schemas.take()).rejects.toThrow();
  });
});
