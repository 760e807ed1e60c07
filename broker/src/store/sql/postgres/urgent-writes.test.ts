import { Signer } from "@stele/eth/node";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { keyRowOf } from "../../../ports/publish-keys.contract.ts";
import { group, history } from "../../../ports/store-examples.contract.ts";
import { oneNode, takeLease } from "../../../ports/store-shared.contract.ts";
import type { SqlStore } from "../sql-store.ts";
import { createPostgresCoordinator, type PostgresCoordinator } from "./coordination/postgres-coordinator.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";
import { waitUntilBlocked } from "./testing/wait-until-blocked.ts";

describe.runIf(hasPostgres)(titleOf("a PostgreSQL store whose connections are all busy with other calls"), () => {
  let server: PostgresServer;
  let store: SqlStore;
  let coordinator: PostgresCoordinator;
  let holder: Client;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterEach(async () => {
    await holder.end();
    await Promise.all([store.stop(), coordinator.stop()]);
  });
  afterAll(async () => server.remove());

  it.each([2, 10])(
    "writes the index, the journal and publish keys while other calls block all of its %i connections",
    async (connectionsMax) => {
      const url = await server.createDatabase();
      store = createPostgresStore({ url, connectionsMax });
      await store.start();
      coordinator = createPostgresCoordinator({ url });
      const lease = await takeLease(coordinator, oneNode);
      holder = new Client({ connectionString: url });
      await holder.connect();
      await holder.query("begin; lock table subscriptions in access exclusive mode");
      const reads = Array.from({ length: 100 }, () => store.listSubscriptions());
      let answered = 0;
      for (const read of reads) void read.then(() => (answered += 1));
      await waitUntilBlocked(server, connectionsMax);
      const { address: sender } = new Signer(new Uint8Array(32).fill(1));
      await store.applyBlocks(group, history.slice(0, 2), { isFinal: false, lease });
      await store.recordTransactions([{ groupId: group, sender, nonce: 1, variants: [], recordedAt: 1 }]);
      await store.recordPublishKeys([keyRowOf(1)]);
      await store.applyBlocks(group, history.slice(2), { isFinal: false, lease });
      expect(answered).toBe(0);
      await holder.query("rollback");
      await Promise.all(reads);
    },
  );
});
