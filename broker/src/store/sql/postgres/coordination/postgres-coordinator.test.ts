import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { testCoordinator } from "../../../../ports/coordinator.contract.ts";
import type { CoordinatorFixture } from "../../../../ports/coordinator-scenario.contract.ts";
import { toSubscriptionRow } from "../../rows.ts";
import { createPostgresStore } from "../postgres-store.ts";
import { EmptiedSchemas, schemaOf } from "../testing/emptied-schemas.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "../testing/postgres-server.ts";
import { createPostgresCoordinator } from "./postgres-coordinator.ts";

describe.runIf(hasPostgres)(titleOf("the PostgreSQL coordinator"), () => {
  let server: PostgresServer;
  let schemas: EmptiedSchemas;
  beforeAll(async () => {
    server = await startPostgres();
    schemas = await EmptiedSchemas.connect(server);
  });
  afterEach(() => schemas.release());
  afterAll(async () => {
    await schemas[Symbol.asyncDispose]();
    await server.remove();
  });

  testCoordinator("PostgreSQL", async (): Promise<CoordinatorFixture> => {
    const url = await schemas.take();
    const schema = schemaOf(url);
    const store = createPostgresStore({ url });
    await store.start();
    const coordinators = [createPostgresCoordinator({ url }), createPostgresCoordinator({ url })] as const;
    return {
      store,
      coordinators,
      insert: async (subscriptions) => {
        const rows = JSON.stringify(subscriptions.map(toSubscriptionRow));
        const columns = `insert into ${schema}.subscriptions select * from json_populate_recordset(null::${schema}.subscriptions, $1)`;
        await server.query(columns, [rows]);
      },
      elapse: async (durationMs) => {
        await server.query(`update ${schema}.nodes set expires_at = expires_at - $1`, [durationMs]);
      },
      close: async () => {
        await Promise.all([store.stop(), ...coordinators.map((coordinator) => coordinator.stop())]);
      },
    };
  });
});
