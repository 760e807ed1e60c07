import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endOfBlock, positionZero, toPosition } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { silentLogger } from "../../lib/logger.ts";
import { letterOf } from "../../ports/store-dead-letters.contract.ts";
import { keyRowOf } from "../../ports/publish-keys.contract.ts";
import { claimOf, filterOf } from "../../ports/session-examples.contract.ts";
import {
  alpha,
  beta,
  blockOf,
  group,
  hashOf,
  history,
  subscriptionOf,
  topicOf,
  webhookTo,
} from "../../ports/store-examples.contract.ts";
import { dropDamagedLetters } from "./subscriptions/check-dead-letters.ts";
import { emptyDamagedIndex } from "./index/check-index.ts";
import { dropDamagedSessions } from "./sessions/check-sessions.ts";
import type { Schema, SqlBackend, SqlDatabase } from "./schema.ts";
import { SqlSessions } from "./sessions/sql-sessions.ts";
import { SqlStore } from "./sql-store.ts";

/** Tables whose changes nothing needs to detect, and why. */
const uncoveredTables: Partial<Record<keyof Schema, string>> = {
  schema_version: "the start refuses a version that it does not know, or that does not fit the tables",
  journal: "the ledger checks each transaction against its hash, and takes the nonce from it",
  group_chains: "the start compares it with the chain, and refuses a difference",
  nodes: "each node writes its row again within seconds",
  group_leases: "the holder of a lease takes it again",
  signers: "a reservation counts only if its node is a member",
};

/** Columns whose changes nothing needs to detect, and why. */
const uncoveredColumns: Partial<Record<keyof Schema, Readonly<Record<string, string>>>> = {
  sessions: {
    owner: "an owner that is not a member has lost the session, and the client connects again",
    outside: "a position that does not fit its check is not used",
    outside_check: "a position that does not fit its check is not used",
  },
  subscriptions: {
    owner: "an owner that is not a member has lost the subscription, and another node takes it over",
    wanted_by: "a node that claims the subscription asks again",
    secret: "decrypting a changed secret fails; the checksum covers whether there is a secret",
  },
  share_events: {
    session_id: "an event that no session has is returned, and the next member gets it",
    session_epoch: "an event that no session has is returned, and the next member gets it",
    given_epoch: "when its take is undone, the event stays with the member until the connection ends",
  },
  vanished: { vanished_id: "it only orders the rows" },
  publish_keys: {
    group_id: "a publish whose key is not found counts as new, as after the 24 hours of a key",
    scope: "a publish whose key is not found counts as new, as after the 24 hours of a key",
    key: "a publish whose key is not found counts as new, as after the 24 hours of a key",
  },
};

const everything = { after: positionZero, upTo: endOfBlock(9), topic: undefined, batchesMax: 99, bytesMax: 1 << 30 };
const shared = parseTopicFilter("$share/s/a");
const sessionMs = 5_000;

/** Changes each covered column in turn: a start or a call must detect the change, or no call may return the value. */
export function testSqlColumns(name: string, create: () => Promise<SqlBackend>): void {
  describe(`${name} with one changed column`, () => {
    let store: SqlStore;
    let database: SqlDatabase;
    let said: string[];
    beforeEach(async () => {
      const backend = await create();
      said = [];
      const say = (message: string): void => void said.push(message);
      const open = async () => {
        const opened = await backend.open();
        const damaged: SqlDatabase["damaged"] = (what) => {
          say(what);
          return opened.damaged(what);
        };
        database = { ...opened, damaged };
        return database;
      };
      store = new SqlStore({ ...backend, open }, silentLogger);
      await store.start();
      await fill(store);
    });
    afterEach(async () => store.stop());

    /** Checks the changed tables as a start does, and reads everything. */
    async function isNoticed(): Promise<boolean> {
      if (await emptyDamagedIndex(database)) return true;
      const sessions = new SqlSessions(database);
      const dropped = await dropDamagedSessions(database, (key) => sessions.removeSession(key));
      if (dropped.sessions.length + dropped.filters.length > 0) return true;
      if ((await dropDamagedLetters(database, silentLogger)).length > 0) return true;
      const answers = await Promise.allSettled([
        store.readBatches(group, everything).then((batches) => batches.length === 4),
        store.findBatch(group, { topic: alpha, sequence: 5 }).then((batch) => batch !== undefined),
        store.listSubscriptions().then(([row]) => row?.state === "active"),
        store.findPublishKey(keyRowOf(1)).then((key) => key !== undefined && !("isDamaged" in key)),
        store.sessions.advanceSessionTime(group, 0).then((ms) => ms === 2 * sessionMs),
        readShare(store),
      ]);
      return said.length > 0 || answers.some((answer) => answer.status === "rejected" || !answer.value);
    }

    it("finds no damage in intact tables", async () => {
      expect(await isNoticed(), said.join("; ")).toBe(false);
    });

    /** The covered columns with a change that neither a start nor a call notices. */
    async function findUnnoticed(change: (table: keyof Schema, column: Column) => Promise<boolean>) {
      const unnoticed: string[] = [];
      const kept = await rowsOf(database);
      for (const { table, columns } of await columnsOf(database)) {
        if (uncoveredTables[table] !== undefined) continue;
        expect(kept.get(table), `rows of ${table}`).not.toEqual([]);
        for (const column of columns) {
          if (uncoveredColumns[table]?.[column.name] !== undefined || !(await change(table, column))) continue;
          said.length = 0;
          if (!(await isNoticed())) unnoticed.push(`${table}.${column.name}`);
          await restore(database, kept);
        }
      }
      return unnoticed;
    }

    async function changeAll(table: keyof Schema, column: Column): Promise<boolean> {
      await sql`update ${sql.table(table)} set ${sql.ref(column.name)} = ${changed(column)}`.execute(database.relaxed);
      return true;
    }

    it("detects a change of every covered column, or returns none of its values", async () => {
      expect(await findUnnoticed(changeAll)).toEqual([]);
    }, 180_000);

    async function emptyZeros(table: keyof Schema, { name, type }: Column): Promise<boolean> {
      if (!/int/i.test(type)) return false;
      const column = sql.ref(name);
      const update = sql`update ${sql.table(table)} set ${column} = x'' where ${column} = 0`;
      return (await update.execute(database.relaxed)).numAffectedRows !== 0n;
    }

    it("detects a 0 that one flipped bit in SQLite's file turned into an empty blob", async () => {
      const [first] = await columnsOf(database);
      if (first?.isTyped) return; // PostgreSQL stores no value of another type.
      expect(await findUnnoticed(emptyZeros)).toEqual([]);
    }, 180_000);
  });
}

interface Column {
  readonly name: string;
  readonly type: string;
}

function changed({ name, type }: Column): RawBuilder<unknown> {
  const ref = sql.ref(name);
  if (/int/i.test(type)) return sql`coalesce(${ref}, 0) + 64`;
  if (/bytea|blob/i.test(type)) return sql`${Buffer.from("changed")}`;
  return sql`coalesce(${ref}, '') || 'x'`;
}

async function columnsOf({ relaxed }: SqlDatabase) {
  const tables = await relaxed.introspection.getTables();
  // PostgreSQL lists the tables of all schemas, including those of other tests.
  const isShared = tables.some(({ schema }) => schema !== undefined);
  const current = isShared ? await sql<{ name: string }>`select current_schema() as name`.execute(relaxed) : undefined;
  const own = tables.filter(({ schema }) => schema === current?.rows[0]?.name);
  return own.map((table) => ({
    table: table.name as keyof Schema, // The database has no others.
    isTyped: isShared,
    columns: table.columns.map(({ name, dataType }): Column => ({ name, type: dataType })),
  }));
}

type Rows = ReadonlyMap<keyof Schema, readonly unknown[]>;

async function rowsOf(database: SqlDatabase): Promise<Rows> {
  const rows = new Map<keyof Schema, readonly unknown[]>();
  for (const { table } of await columnsOf(database)) {
    rows.set(table, (await sql`select * from ${sql.table(table)}`.execute(database.relaxed)).rows);
  }
  return rows;
}

async function restore({ relaxed }: SqlDatabase, kept: Rows): Promise<void> {
  await relaxed.transaction().execute(async (transaction) => {
    for (const [table, rows] of kept) {
      await transaction.deleteFrom(table).execute();
      if (rows.length > 0) await transaction.insertInto(table).values(rows).execute();
    }
  });
}

/** Writes at least one row into every table whose columns must be covered: a rollback leaves a vanished batch, and a share gives an event to a member. */
async function fill(store: SqlStore): Promise<void> {
  await store.applyBlocks(group, history);
  await store.rollBack(group, { number: 5, hash: hashOf(5) });
  const retained = [{ name: beta, retained: { sequence: 3, position: toPosition(4, 0) } }];
  const { hash: transactionHash } = blockOf(6);
  const place = { blockNumber: 6, logIndex: 9, address: topicOf(alpha).address, transactionHash };
  const skippedEntries = [{ ...place, code: "wrong-root", reason: "its root differs", sender: place.address }] as const;
  await store.applyBlocks(group, [blockOf(6, { hash: hashOf(66), retained, skippedEntries })]);
  const delivery = webhookTo({ options: { concurrency: 2 } });
  const subscription = subscriptionOf(1, { cursor: positionZero, delivery });
  await store.insertSubscription(subscription, 1);
  const letter = letterOf(1, toPosition(2, 0));
  await store.saveProgress([{ ...subscription, cursor: letter.position, skipped: [letter] }]);
  await store.recordPublishKeys([keyRowOf(1)]);
  await fillSessions(store);
}

async function fillSessions({ sessions, shares }: SqlStore): Promise<void> {
  const { newId: id, newEpoch: epoch } = claimOf();
  await sessions.claimSession(claimOf({ position: positionZero }));
  const member = { ...filterOf(2), filter: shared, startsAfter: positionZero };
  const put = [{ ...filterOf(1), startsAfter: positionZero }, member];
  await sessions.saveSessionFilters({ id, epoch }, { put, removed: [], generation: 1 });
  const share = await shares.findShare(group, shared);
  if (share === undefined) throw new Error("there is no share");
  const position = toPosition(2, 0);
  const gifts = [{ position, topic: alpha, to: { id, epoch } }];
  await shares.takeShared({ ...share, cursor: position, gifts, dropped: [] });
  await sessions.advanceSessionTime(group, sessionMs);
  const { will, willDelayMs, expiryMs } = claimOf();
  await sessions.detachSession({ id, epoch }, { will, willDelayMs, expiryMs });
  await sessions.advanceSessionTime(group, sessionMs);
}

/** Whether the share's cursor is at its event, and the event is returned. */
async function readShare({ shares }: SqlStore): Promise<boolean> {
  const share = await shares.findShare(group, shared);
  const returned = share === undefined ? [] : await shares.listReturned(share.id, { after: positionZero, atMost: 9 });
  return share?.cursor === toPosition(2, 0) && share.epoch === 1 && returned.length === 1;
}
