import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findReceiver } from "../../domain/receiver.ts";
import { positionZero, toPosition } from "../../domain/position.ts";
import { silentLogger } from "../../lib/logger.ts";
import {
  alpha,
  batchOf,
  blockOf,
  group,
  hashOf,
  history,
  subscriptionOf,
} from "../../ports/store-examples.contract.ts";
import { temporaryFile } from "../temporary-file.contract.ts";
import { migrate, schemaVersion } from "./migrations.ts";
import { parsePostgresAddress } from "./postgres/address.ts";
import { createPostgresBackend } from "./postgres/postgres-backend.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./postgres/testing/postgres-server.ts";
import type { SqlBackend, SqlDatabase } from "./schema.ts";
import { createSqliteBackend } from "./sqlite/sqlite-backend.ts";
import { SqlStore } from "./sql-store.ts";

const registry = { chainId: 7, genesisHash: hashOf(1), registryAddress: `0x${"aa".repeat(20)}` } as const;

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
  let store: SqlStore;
  beforeEach(async () => {
    backend = await create();
    store = new SqlStore(backend, silentLogger);
  });
  afterEach(async () => store.stop());

  async function onDatabase(action: (database: SqlDatabase) => Promise<void>): Promise<void> {
    const database = await backend.open();
    try {
      await action(database);
    } finally {
      await database.close();
    }
  }

  it("what a store of version 5 kept is all there in this one, with owners to come", async () => {
    await onDatabase(async (database) => {
      expect(await migrate(database, backend, 5)).toBe(0);
      await fillVersion5(database);
    });
    await store.start();
    expect(await store.findHead(group)).toEqual({ blockNumber: 6, hash: hashOf(6), generation: 0 });
    expect(await store.listSubscriptions()).toEqual([subscriptionOf(1), subscriptionOf(2, { state: "suspended" })]);
    expect((await store.listTopics(group, { offset: 0, limit: 9 })).topics).toMatchObject([
      { name: alpha, sequence: 8 },
    ]);
    expect(await store.findBatch(group, { topic: alpha, sequence: 8 })).toEqual(history.at(-1)?.batches[0]);
    expect(await store.countEventsAfter(group, alpha, positionZero)).toBe(1);
    expect(await store.findGroupRecord(group)).toEqual(registry);
    expect(await store.listBlocks(group, { atMost: 9 })).toEqual([{ number: 6, hash: hashOf(6) }]);
    await store.applyBlocks(group, [blockOf(7, { batches: [batchOf(alpha, { block: 7, sequence: 9, count: 1 })] })]);
    await store.rollBack(group, { number: 6, hash: hashOf(6) });
    expect(await store.findHead(group)).toMatchObject({ blockNumber: 6, generation: 1 });
    const moved = { id: subscriptionOf(1).id, epoch: 0, cursor: toPosition(6, 0), notifiedCount: 2, notifiedAt: 1 };
    expect(await store.saveProgress([moved])).toEqual([]);
    expect(await store.findSubscription(moved.id)).toMatchObject(moved);
    expect(await store.countSubscriptions()).toBe(2);
    expect(await store.countSubscriptionsTo(findReceiver(subscriptionOf(1).url) ?? "")).toBe(2);
    expect(await store.deleteSubscription(moved)).toBe(true);
    expect(await store.countSubscriptions()).toBe(1);
  });

  it("a store of the newest version is left as it is, and no step is made twice", async () => {
    await onDatabase(async (database) => {
      expect(await migrate(database, backend)).toBe(0);
      expect(await migrate(database, backend)).toBe(schemaVersion);
      expect(await database.relaxed.selectFrom("schema_version").selectAll().execute()).toEqual([
        { version: schemaVersion },
      ]);
    });
  });
}

/** Rows as version 5 wrote them: of a topic whose first events were left out, one batch, and two subscriptions. */
async function fillVersion5({ relaxed }: SqlDatabase): Promise<void> {
  const [hash, batch] = [hashOf(6), history.at(-1)?.batches[0]];
  if (batch === undefined) throw new Error("the history ends without a batch");
  const { address, sender } = { address: `0x${"11".repeat(20)}`, sender: `0x${"bb".repeat(20)}` };
  await sql`insert into groups (group_id, block_number, block_hash) values (${group}, 6, ${hash})`.execute(relaxed);
  await sql`insert into topics (topic_id, group_id, ordinal, name, digest, address, sender, created_timestamp, sequence,
      block_number, closed, event_count)
    values (1, ${group}, 1, ${alpha}, '8ed3f6ad', ${address}, ${sender}, 1, 8, 6, 0, 1)`.execute(relaxed);
  await sql`insert into batches (group_id, first_position, last_position, topic_id, first_sequence, events_before, byte_count,
      transaction_hash, log_index, events)
    values (${group}, ${batch.firstPosition}, ${batch.firstPosition}, 1, 8, 0, 256, ${batch.transactionHash}, 0,
      ${batch.events})`.execute(relaxed);
  await sql`insert into blocks (group_id, number, hash, undo) values (${group}, 6, ${hash}, '{"images":[]}')`.execute(
    relaxed,
  );
  await sql`insert into group_chains (group_id, chain_id, genesis_hash, registry_address)
    values (${group}, ${registry.chainId}, ${registry.genesisHash}, ${registry.registryAddress})`.execute(relaxed);
  for (const kept of [subscriptionOf(1), subscriptionOf(2, { state: "suspended" })]) {
    await sql`insert into subscriptions (id, group_id, filter, interface_type, url, secret, state, cursor, notified_count,
        notified_at, created_at)
      values (${kept.id}, ${group}, ${kept.filter}, ${kept.interfaceType}, ${kept.url}, ${kept.secret}, ${kept.state},
        ${kept.cursor}, ${kept.notifiedCount}, ${kept.notifiedAt}, ${kept.createdAt})`.execute(relaxed);
  }
}
