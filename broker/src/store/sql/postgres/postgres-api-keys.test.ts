import { afterAll, beforeAll, describe } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { testApiKeys } from "../../../ports/api-keys.contract.ts";
import { createPostgresApiKeys } from "./postgres-api-keys.ts";
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
});
