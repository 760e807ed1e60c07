import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { testApiKeys } from "../../../ports/api-keys.contract.ts";
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
