import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { testApiKeys, testRestoredApiKeys } from "../../../ports/api-keys.contract.ts";
import { createPostgresApiKeys, readPostgresRoles } from "./postgres-api-keys.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

describe.runIf(hasPostgres)(titleOf("the keys in PostgreSQL"), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());

  testApiKeys("PostgreSQL", async () => {
    const url = await server.createSchema();
    return [createPostgresApiKeys({ url, logger: silentLogger }), createPostgresApiKeys({ url, logger: silentLogger })];
  });

  testRestoredApiKeys("PostgreSQL", async () => {
    const url = await server.createSchema();
    const tables = ["api_keys", "api_key_revisions", "access_roles", "access_role_revisions"];
    const onEach = async (toStatements: (table: string) => readonly string[]): Promise<void> => {
      for (const statement of tables.flatMap(toStatements)) await server.query(statement, [], url);
    };
    return {
      broker: createPostgresApiKeys({ url, logger: silentLogger }),
      command: createPostgresApiKeys({ url, logger: silentLogger }),
      save: () => onEach((table) => [`create table saved_${table} as table ${table}`]),
      restore: () => onEach((table) => [`delete from ${table}`, `insert into ${table} table saved_${table}`]),
    };
  });

  it("reads the roles of a schema; from a schema without tables it reads none, and creates no tables", async () => {
    const url = await server.createSchema();
    expect(await readPostgresRoles({ url, logger: silentLogger })).toEqual([]);
    expect(await readPostgresRoles({ url, logger: silentLogger })).toEqual([]);
    const keys = createPostgresApiKeys({ url, logger: silentLogger });
    await keys.start();
    await keys.putRole({ name: "member", rules: [{ effect: "allow", actions: ["read"] }] }, 10);
    await keys.stop();
    expect(await readPostgresRoles({ url, logger: silentLogger })).toMatchObject([{ name: "member" }]);
  });
});
