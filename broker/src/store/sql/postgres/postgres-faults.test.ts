import { join } from "node:path";
import { isBrokerError } from "@stele/wire";
import { sql } from "kysely";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { endOfBlock } from "../../../domain/position.ts";
import { isCallback, nothingFailed, type SubscriptionId } from "../../../domain/subscription.ts";
import {
  alpha,
  batchOf,
  blockOf,
  group,
  history,
  subscriptionOf,
  topicOf,
} from "../../../ports/store-examples.contract.ts";
import { type LogFields, type Logger, silentLogger } from "../../../lib/logger.ts";
import type { SqlStore } from "../sql-store.ts";
import { parsePostgresAddress } from "./address.ts";
import { connectMsMax, outageWaitMsMax } from "./limits.ts";
import { createPostgresBackend } from "./postgres-backend.ts";
import { createPostgresStore } from "./postgres-store.ts";
import type { SessionLimits } from "./session.ts";
import { connectAll } from "./testing/connect-all.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";
import { waitUntilBlocked } from "./testing/wait-until-blocked.ts";
import { startRelay } from "./testing/relay.ts";

/** A time limit in milliseconds that no test reaches. */
const farAway = 600_000;
const storeUnreachable = expect.objectContaining({ name: "BrokerError", code: 200207, retry: true });

describe.runIf(hasPostgres)(titleOf("a PostgreSQL store whose server fails"), () => {
  let server: PostgresServer;
  let url: string;
  const stores: SqlStore[] = [];
  beforeAll(async () => {
    server = await startPostgres({ settings: ["deadlock_timeout=10ms"] });
  });
  beforeEach(async () => {
    url = await server.createDatabase();
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.stop()));
  });
  afterAll(async () => server.remove());

  it.each(["fast", "kill"] as const)(
    "continues after a restart under load (%s) and keeps every durable commit",
    async (way) => {
      const store = await started();
      await store.applyBlocks(group, [blockOf(1, { opened: [topicOf(alpha)] })]);
      const load = new Load(store);
      await load.until(() => load.kept.size >= 20);
      await server.halt(way);
      await server.resume();
      const more = load.kept.size + 20;
      await load.until(() => load.kept.size >= more);
      const due = way === "kill" ? /cannot be reached|continues with sequence/ : /cannot be reached/; // Unsynced blocks are lost.
      expect((await load.stop()).filter((failure) => !due.test(String(failure)))).toEqual([]);
      const ids = new Set((await store.listSubscriptions()).map(({ id }) => id));
      expect([...load.kept].filter((id) => !ids.has(id))).toEqual([]);
      await expectWhole(store);
    },
  );

  it("waits for a server that restarts; after the longest wait, refuses calls at once until the server is back", async () => {
    const store = await started();
    await server.halt("fast");
    const first = Promise.allSettled([store.findHead(group), store.findHead(group)]);
    await server.resume();
    // A call may have received a connection that broke unnoticed.
    expect((await first).some(({ status }) => status === "fulfilled")).toBe(true);
    await server.halt("fast");
    await expect(callUntilRefused(store)).rejects.toEqual(storeUnreachable);
    const refusedAt = performance.now();
    await expect(store.findHead(group)).rejects.toEqual(storeUnreachable);
    expect(performance.now() - refusedAt).toBeLessThan(outageWaitMsMax); // A call that waits takes at least that long.
    await expect(store.deadLetters.count(subscriptionOf(1).id)).rejects.toEqual(storeUnreachable);
    await expect(store.sessions.countDetached(group)).rejects.toEqual(storeUnreachable);
    await server.resume();
    await callUntilAnswered(store);
    expect(await store.findHead(group)).toBeUndefined();
  });

  it("survives the loss of all connections, during calls and between them", async () => {
    const store = await started();
    await store.applyBlocks(group, [blockOf(1, { opened: [topicOf(alpha)] })]);
    const load = new Load(store);
    for (let round = 0; round < 5; round += 1) {
      const before = load.kept.size;
      await load.until(() => load.kept.size >= before + 10);
      await killSessions();
    }
    const failures = await load.stop();
    expect(failures.filter((failure) => !isBrokerError(failure, "storeUnreachable"))).toEqual([]);
    expect(failures.length).toBeGreaterThan(0);
    await killSessions();
    await callUntilAnswered(store);
    await expectWhole(store);
  });

  it.each<[string, Partial<SessionLimits>]>([
    ["lock", { lockMsMax: 100, statementMsMax: farAway }],
    ["statement", { lockMsMax: farAway, statementMsMax: 100 }],
  ])("a change that another session blocks fails at the %s time limit and is undone", async (_, limits) => {
    const store = await started(limits);
    await store.applyBlocks(group, history);
    const other = await session();
    await other.query("begin");
    await other.query("lock table topics, subscriptions");
    await expect(store.applyBlocks(group, [gammaBlock])).rejects.toEqual(storeUnreachable);
    await expect(store.insertSubscription(subscriptionOf(1), 0)).rejects.toEqual(storeUnreachable);
    await other.query("rollback");
    expect(await store.findHead(group)).toMatchObject({ blockNumber: 6 });
    await store.applyBlocks(group, [gammaBlock]);
    expect(await store.insertSubscription(subscriptionOf(1), 0)).toBe("inserted");
    await other.end();
  });

  it("a node that freezes during a transaction loses the transaction and its locks", async () => {
    const store = await started();
    const address = parsePostgresAddress(url);
    const backend = createPostgresBackend({ address, logger: silentLogger, connectionsMax: 1 });
    const frozen = await backend.open();
    const change = frozen.relaxed.transaction().execute(async (transaction) => {
      await frozen.lock(transaction, `index ${group}`);
      await transaction.deleteFrom("groups").execute();
      // Set only here: on a busy machine the store may pause between any two statements.
      await sql`set local idle_in_transaction_session_timeout = 200`.execute(transaction);
      await store.applyBlocks(group, history); // Resolves once the lock is free.
    });
    await expect(change).rejects.toMatchObject({ fault: "unavailable" });
    expect(await store.findHead(group)).toMatchObject({ blockNumber: 6 });
    expect(await frozen.relaxed.selectFrom("groups").selectAll().execute()).toHaveLength(1);
    await frozen.close();
  });

  it("calls without a free connection fail as busy", async () => {
    const store = await started({ lockMsMax: 0 }, { connectionsMax: 1 });
    const other = await session();
    await other.query("begin");
    await other.query("lock table subscriptions");
    const held = store.listSubscriptions(); // has the only connection until the lock is free
    await expect(store.findHead(group)).rejects.toMatchObject({ name: "BrokerError", code: 200300 });
    await other.query("rollback");
    await held;
    expect(await store.findHead(group)).toBeUndefined();
    await other.end();
  });

  it("calls without a free connection fail as unreachable if the server stopped answering", async () => {
    const relay = await startRelay(join(server.folder, ".s.PGSQL.5432"));
    const name = new URL(url).pathname;
    url = `postgres://stele@127.0.0.1:${relay.port}${name}`;
    const store = await started({}, { connectionsMax: 2 });
    await Promise.all([store.findHead(group), store.findHead(group)]);
    // Twice: the first time must leave no state behind.
    for (let time = 0; time < 2; time += 1) {
      relay.silence();
      const held = Promise.allSettled([store.findHead(group), store.findHead(group)]);
      const late: Promise<unknown>[] = [];
      const timer = setInterval(() => void late.push(store.findHead(group).catch((error: unknown) => error)), 100);
      const waiting = await Promise.allSettled(Array.from({ length: 3 }, async () => store.findHead(group)));
      clearInterval(timer);
      for (const call of waiting) expect(call).toEqual({ status: "rejected", reason: storeUnreachable });
      for (const error of await Promise.all(late)) expect(error).toEqual(storeUnreachable);
      const refusedAt = performance.now();
      await expect(store.findHead(group)).rejects.toEqual(storeUnreachable);
      expect(performance.now() - refusedAt).toBeLessThan(connectMsMax); // A call that waits takes at least that long.
      relay.restore();
      await callUntilAnswered(store);
      await held;
    }
    await Promise.all(stores.splice(0).map((store) => store.stop()));
    relay.close();
  }, 60_000);

  it.each(["fast", "kill"] as const)("logs one line for an outage (%s), and one for its end", async (way) => {
    const lines: (readonly [string, string, LogFields])[] = [];
    const store = await started({}, { connectionsMax: 4, logger: listing(lines) });
    lines.length = 0;
    const call = async () => Promise.allSettled(Array.from({ length: 8 }, async () => store.findHead(group)));
    const callUntilReported = async (message: string) => {
      while (lines.every(([, logged]) => logged !== message)) {
        await call();
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await connectAll(server, await session(), { call, connections: 4 });
    await server.halt(way);
    await callUntilReported("database unreachable");
    await server.resume();
    await callUntilReported("database reached again");
    // On a busy machine the first failed connection may come late.
    const reported = lines.filter(([, message]) => message !== "database connections lost");
    expect(lines.length - reported.length).toBeLessThanOrEqual(1);
    expect(reported).toEqual([
      ["warn", "database unreachable", { pool: "store", connectionsLost: 4, reason: expect.any(String) }],
      ["info", "database reached again", { pool: "store", connectionsLost: 4, awayMs: expect.any(Number) }],
    ]);
  });

  it("gives up a connection that is cut off silently, and gives the next call a new one", async () => {
    const relay = await startRelay(join(server.folder, ".s.PGSQL.5432"));
    const name = new URL(url).pathname;
    url = `postgres://stele@127.0.0.1:${relay.port}${name}`;
    const store = await started({ statementMsMax: 100 });
    await store.applyBlocks(group, history);
    relay.freeze();
    await expect(store.findHead(group)).rejects.toEqual(storeUnreachable);
    expect(await store.findHead(group)).toMatchObject({ blockNumber: 6 });
    await Promise.all(stores.splice(0).map((store) => store.stop()));
    relay.close();
  });

  it("counts subscriptions after another session rolled back a delete, and after it truncated the table", async () => {
    const store = await started();
    for (const number of [1, 2, 3]) await store.insertSubscription(subscriptionOf(number), 0);
    const other = await session();
    await other.query("begin");
    await other.query("delete from subscriptions");
    await other.query("rollback");
    expect(await store.countSubscriptions()).toBe(3);
    await other.query("truncate subscriptions");
    expect(await store.countSubscriptions()).toBe(0);
    await store.insertSubscription(subscriptionOf(1), 0);
    expect(await store.countSubscriptions()).toBe(1);
    await other.end();
  });

  it("nodes that write progress of the same subscriptions never deadlock", async () => {
    const [one, other] = [await started(), await started()];
    const numbers = Array.from({ length: 50 }, (_, index) => index + 1);
    for (const number of numbers) await one.insertSubscription(subscriptionOf(number), 0);
    const rows = (block: number) =>
      numbers.map((number) => ({ ...progressOf(number), cursor: endOfBlock(1000 + block) }));
    const before = await countDeadlocks();
    for (let round = 0; round < 200; round += 1) {
      await Promise.all([one.saveProgress(rows(round)), other.saveProgress(rows(round).toReversed())]);
    }
    const cursors = (await one.listSubscriptions()).map(({ cursor }) => cursor);
    expect(new Set(cursors)).toEqual(new Set([endOfBlock(1000 + 199)]));
    expect(await countDeadlocks()).toBe(before);
  });

  it("retries a transaction that the server undid because of a deadlock", async () => {
    await server.query(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '1s'`);
    const [store, other] = [await started(), await session()];
    const [ids, from = ""] = [[1, 2].map((number) => subscriptionOf(number).id), subscriptionOf(1).delivery.secret];
    for (const number of [1, 2]) await store.insertSubscription(subscriptionOf(number), 0);
    const before = await countDeadlocks();
    await other.query("set deadlock_timeout = '1h'"); // So that the server undoes the store's transaction.
    await other.query("begin");
    const touch = "update subscriptions set notified_at = notified_at where id = $1";
    await other.query(touch, [ids[1]]);
    const replacing = store.replaceSecrets(ids.map((id) => ({ id, from, to: "next" })));
    await waitUntilBlocked(server);
    await other.query(touch, [ids[0]]);
    await other.query("commit");
    expect(await replacing).toBe(2);
    const rows = (await store.listSubscriptions()).filter(isCallback);
    expect(rows.map(({ delivery }) => delivery.secret)).toEqual(["next", "next"]);
    expect(await countDeadlocks()).toBe(before + 1);
    await other.end();
  });

  async function countDeadlocks(): Promise<number> {
    const [row] = await server.query("select sum(deadlocks)::int as deadlocks from pg_stat_database");
    return Number(row?.["deadlocks"]);
  }

  async function started(
    session: Partial<SessionLimits> = {},
    options: { connectionsMax?: number; logger?: Logger } = {},
  ): Promise<SqlStore> {
    const store = createPostgresStore({ url, session, ...options });
    await store.start();
    stores.push(store);
    return store;
  }

  async function session(): Promise<Client> {
    const client = new Client({ connectionString: url });
    await client.connect();
    return client;
  }

  async function killSessions(): Promise<void> {
    await server.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stele'");
  }
});

/** A logger that adds the lines of the default level to `lines`. */
function listing(lines: (readonly [string, string, LogFields])[], fields: LogFields = {}): Logger {
  const note =
    (level: string) =>
    (message: string, own: LogFields = {}): void =>
      void lines.push([level, message, { ...fields, ...own }]);
  return {
    debug: () => {},
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
    child: (more) => listing(lines, { ...fields, ...more }),
  };
}

const gammaBlock = blockOf(7, { batches: [batchOf(alpha, { block: 7, sequence: 9, count: 1 })] });

const progressOf = (number: number) =>
  subscriptionOf(number, { notifiedCount: number, notifiedAt: 1_800_000_000_000, ...nothingFailed });

/** Expects the topic `alpha` to have every event up to its sequence once, and the head to be the block of its last event. */
async function expectWhole(store: SqlStore): Promise<void> {
  const topic = await store.findTopic(group, alpha);
  const range = {
    after: endOfBlock(0),
    upTo: endOfBlock(1_000_000),
    topic: alpha,
    batchesMax: 1_000_000,
    bytesMax: 1 << 30,
  };
  const batches = await store.readBatches(group, range);
  expect(batches.map(({ firstSequence }) => firstSequence)).toEqual(batches.map((_, index) => index + 1));
  expect(topic?.sequence).toBe(batches.length);
  expect((await store.findHead(group))?.blockNumber).toBe(batches.length + 1);
}

async function callUntilRefused(store: SqlStore): Promise<never> {
  for (;;) await store.findHead(group);
}

async function callUntilAnswered(store: SqlStore): Promise<void> {
  for (;;) {
    try {
      await store.findHead(group);
      return;
    } catch (error) {
      if (!isBrokerError(error, "storeUnreachable")) throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

/** Calls a store all the time, with several kinds of calls concurrently; continues after failures. */
class Load {
  /** Subscriptions whose insertion was confirmed. */
  readonly kept = new Set<SubscriptionId>();
  readonly #store: SqlStore;
  readonly #failures: unknown[] = [];
  readonly #loops: readonly Promise<void>[];
  #isStopped = false;
  #number = 0;

  constructor(store: SqlStore) {
    this.#store = store;
    this.#loops = [
      this.#repeat(async () => this.#applyNext()),
      ...Array.from({ length: 4 }, async () => this.#repeat(async () => this.#insert())),
      ...Array.from({ length: 4 }, async () =>
        this.#repeat(async () => store.listTopics(group, { offset: 0, limit: 9 })),
      ),
      this.#repeat(async () => store.saveProgress([{ ...progressOf(1), cursor: endOfBlock((this.#number += 1)) }])),
    ];
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  async stop(): Promise<readonly unknown[]> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    return this.#failures;
  }

  async #repeat(call: () => Promise<unknown>): Promise<void> {
    while (!this.#isStopped) {
      await call().catch((error: unknown) => {
        this.#failures.push(error);
        return new Promise((resolve) => setTimeout(resolve, 10));
      });
    }
  }

  /** Applies the block after the store's head, as a follower does. */
  async #applyNext(): Promise<void> {
    const next = ((await this.#store.findHead(group))?.blockNumber ?? 0) + 1;
    const batches = [batchOf(alpha, { block: next, sequence: next - 1, count: 1 })];
    await this.#store.applyBlocks(group, [
      next === 1 ? blockOf(1, { opened: [topicOf(alpha)] }) : blockOf(next, { batches }),
    ]);
  }

  async #insert(): Promise<void> {
    const subscription = subscriptionOf((this.#number += 1));
    if ((await this.#store.insertSubscription(subscription, 0)) === "inserted") this.kept.add(subscription.id);
  }
}
