import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { DeadLetter } from "../../../domain/dead-letter.ts";
import { positionZero, toPosition } from "../../../domain/position.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { testGroupRecords } from "../../../ports/group-records.contract.ts";
import { testJournal } from "../../../ports/journal.contract.ts";
import { letterOf } from "../../../ports/store-dead-letters.contract.ts";
import { testPublishKeys } from "../../../ports/publish-keys.contract.ts";
import { testSecretRows } from "../../../ports/secret-rows.contract.ts";
import { testStore } from "../../../ports/store.contract.ts";
import { claimOf, filterOf, idOf } from "../../../ports/session-examples.contract.ts";
import { testSessionStore } from "../../../ports/session-store.contract.ts";
import { testSharedStore } from "../../../ports/store-shared.contract.ts";
import { alpha, group, hashOf, history, subscriptionOf, webhookTo } from "../../../ports/store-examples.contract.ts";
import { testSqlDamage } from "../sql-damage.contract.ts";
import { testStaleRows } from "../sql-stale-rows.contract.ts";
import { testSqlColumns } from "../sql-columns.contract.ts";
import { testSqlSessionDamage } from "../sessions/sql-session-damage.contract.ts";
import { testSqlStatements } from "../sql-statements.contract.ts";
import type { SqlStore } from "../sql-store.ts";
import { createPostgresCoordinator } from "./coordination/postgres-coordinator.ts";
import { parsePostgresAddress } from "./address.ts";
import { createPostgresBackend } from "./postgres-backend.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { EmptiedSchemas } from "./testing/emptied-schemas.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

describe.runIf(hasPostgres)(titleOf("the PostgreSQL store"), () => {
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

  const create = async () => createPostgresStore({ url: await schemas.take() });
  testStore("PostgreSQL", create);
  testSessionStore("PostgreSQL", create);
  const createBackend = async () => {
    const address = parsePostgresAddress(await schemas.take());
    return createPostgresBackend({ address, logger: silentLogger, connectionsMax: 2 });
  };
  testSqlDamage("PostgreSQL", createBackend);
  testStaleRows("PostgreSQL", createBackend);
  testSqlColumns("PostgreSQL", createBackend);
  testSqlSessionDamage("PostgreSQL", createBackend);
  testSqlStatements("PostgreSQL", createBackend);
  testJournal("PostgreSQL", create);
  testGroupRecords("PostgreSQL", create);
  testPublishKeys("PostgreSQL", create);
  testSecretRows("PostgreSQL", create);

  testSharedStore("PostgreSQL", async () => {
    const url = await schemas.take();
    const stores = [createPostgresStore({ url }), createPostgresStore({ url })] as const;
    await Promise.all(stores.map(async (store) => store.start()));
    const coordinator = createPostgresCoordinator({ url });
    const close = async () => {
      await Promise.all([...stores, coordinator].map(async (part) => part.stop()));
    };
    return { stores, coordinator, close };
  });

  it("commits progress without waiting for the disk, and waits for it at a change of state", async () => {
    const url = await server.createSchema();
    const store = createPostgresStore({ url, connectionsMax: 1 });
    onTestFinished(async () => store.stop());
    await store.start();
    const subscription = subscriptionOf(1);
    await store.insertSubscription(subscription, 0);
    await server.query(recordCommits("subscriptions"), [], url);
    const { id, epoch } = subscription;
    const progress = {
      id,
      epoch,
      cursor: toPosition(9, 0),
      notifiedCount: 1,
      notifiedAt: 1,
      failedAttempts: 0,
      failedMs: 0,
      failingSince: 0,
      retryAt: 0,
    };
    await store.saveProgress([progress]);
    await store.setSubscriptionState(subscription, "suspended");
    const commits = await server.query("select setting from commits order by number", [], url);
    expect(commits).toEqual([{ setting: "off" }, { setting: "on" }]);
  });

  it("writes progress and dead letters in statements of 1,000 rows, or more if one row has more letters", async () => {
    const url = await server.createSchema();
    const store = createPostgresStore({ url });
    onTestFinished(async () => store.stop());
    await store.start();
    const subscriptions = Array.from({ length: 1_502 }, (_, number) => subscriptionOf(number));
    await Promise.all(subscriptions.map(async (subscription) => store.insertSubscription(subscription, 0)));
    await server.query(recordStatements("subscriptions"), [], url);
    const cursor = toPosition(2_000, 0);
    const rows = subscriptions.map((one, number) => {
      const few = number <= 500 ? 1 : 0;
      return { ...one, cursor, skipped: lettersOf(number, number === 0 ? 1_000 : few) };
    });
    expect(await store.saveProgress(rows)).toEqual([]);
    const statements = await server.query("select rows from statements order by number", [], url);
    expect(statements).toEqual([{ rows: "1" }, { rows: "500" }, { rows: "1000" }, { rows: "1" }]);
    expect(await server.query("select count(*) from dead_letters", [], url)).toEqual([{ count: "1500" }]);
    expect(new Set((await store.listSubscriptions()).map(({ cursor }) => cursor))).toEqual(new Set([cursor]));
  });

  // Otherwise, after a crash of the server, two members could get the same event, or the share could wait for a member that never got its event.
  it("waits for the disk when a member takes events from a share, and when a take is undone", async () => {
    const url = await schemas.take();
    const store = createPostgresStore({ url });
    onTestFinished(async () => store.stop());
    await store.start();
    const { sessions, shares } = store;
    await sessions.claimSession(claimOf());
    const [key, filter] = [{ id: idOf(1), epoch: 7 }, parseTopicFilter("$share/s/#")];
    const put = [filterOf(1, { filter, isNoLocal: false, identifier: undefined })];
    await sessions.saveSessionFilters(key, { put, removed: [], generation: 0 });
    const share = await shares.findShare(group, filter);
    if (share === undefined) throw new Error("there is no share");
    await server.query(recordCommits("shares"), [], url);
    const gifts = [{ topic: alpha, position: toPosition(9, 0), to: key }];
    const take = { ...share, cursor: toPosition(9, 0), gifts, dropped: [] };
    expect(await shares.takeShared(take)).toBe("taken");
    await shares.returnShared(take);
    expect(await server.query("select setting from commits", [], url)).toEqual([{ setting: "on" }, { setting: "on" }]);
  });

  describe("shared by two nodes", () => {
    let one: SqlStore;
    let other: SqlStore;
    beforeEach(async () => {
      const url = await schemas.take();
      one = createPostgresStore({ url });
      other = createPostgresStore({ url });
      await Promise.all([one.start(), other.start()]);
    });
    afterEach(async () => Promise.all([one.stop(), other.stop()]));

    it("a node immediately reads what the other node wrote", async () => {
      await one.applyBlocks(group, history.slice(0, 2));
      expect(await other.findTopic(group, alpha)).toMatchObject({ sequence: 3 });
      await other.applyBlocks(group, history.slice(2));
      expect(await one.findTopic(group, alpha)).toMatchObject({ sequence: 8 });
      expect(await one.countEventsAfter(group, alpha, positionZero)).toBe(6);
      await other.rollBack(group, { number: 2, hash: hashOf(2) });
      expect(await one.findTopic(group, alpha)).toMatchObject({ sequence: 3 });
      await other.insertSubscription(subscriptionOf(1), 1);
      expect(await one.deleteSubscription(subscriptionOf(1))).toBe(true);
      expect(await other.listSubscriptions()).toEqual([]);
    });

    it("if two nodes write the same block, accepts it from one and refuses it from the other", async () => {
      for (const block of history) {
        const results = await Promise.allSettled([one, other].map(async (store) => store.applyBlocks(group, [block])));
        expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
        expect(results.find(({ status }) => status === "rejected")).toMatchObject({
          reason: { message: expect.stringContaining("does not follow the head") },
        });
      }
      expect(await one.findTopic(group, alpha)).toMatchObject({ sequence: 8 });
      expect(await other.countEventsAfter(group, alpha, positionZero)).toBe(6);
    });

    it("inserts the other rows of a batch if the database refuses one of them", async () => {
      const urls = ["http://one/", "http://two/", "http://nul/\0", "http://three/"];
      const answers = await Promise.allSettled(
        urls.map(async (url, number) =>
          one.insertSubscription(subscriptionOf(number, { delivery: webhookTo({ url }) }), 0),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
      expect(await other.countSubscriptions()).toBe(3);
    });

    it("inserts one of two subscriptions with the same identifier, and answers taken for the other", async () => {
      const urls = ["http://one/", "http://other/"];
      const answers = await Promise.all(
        [one, other].map(async (store, index) =>
          store.insertSubscription(subscriptionOf(1, { delivery: webhookTo({ url: urls[index] ?? "" }) }), 0),
        ),
      );
      expect(answers.map(String).toSorted()).toEqual(["inserted", "taken"]);
      expect(await one.findSubscription(subscriptionOf(1).id)).toMatchObject({
        delivery: { url: urls[answers.indexOf("inserted")] },
      });
    });
  });
});

function lettersOf(number: number, count: number): readonly DeadLetter[] {
  return Array.from({ length: count }, (_, block) => letterOf(number, toPosition(1_000 + block, 0)));
}

/** Records the number of rows that each statement updates. */
const recordStatements = (table: string): string => `
  create table statements (number bigserial, rows bigint);
  create function record_statement() returns trigger language plpgsql as $$ begin
    insert into statements (rows) select count(*) from changed;
    return null;
  end $$;
  create trigger recorded after update on ${table} referencing new table as changed for each statement
    execute function record_statement()`;

/** Records `synchronous_commit` for each update of a row. */
const recordCommits = (table: string): string => `
  create table commits (number bigserial, setting text);
  create function record_commit() returns trigger language plpgsql as $$ begin
    insert into commits (setting) values (current_setting('synchronous_commit'));
    return null;
  end $$;
  create trigger recorded after update on ${table} for each row execute function record_commit()`;
