import { afterAll, beforeAll, describe } from "vitest";
import { testJournal } from "../../../ports/journal.contract.ts";
import { testStore } from "../../../ports/store.contract.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

describe.runIf(hasPostgres)(titleOf("the PostgreSQL store"), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => server.remove());

  const create = async () => createPostgresStore({ url: await server.createSchema() });
  testStore("PostgreSQL", create);
  testJournal("PostgreSQL", create);
});
