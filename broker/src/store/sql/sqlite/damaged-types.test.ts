import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endOfBlock, positionZero, toPosition } from "../../../domain/position.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { claimOf, filterOf } from "../../../ports/session-examples.contract.ts";
import { group, history, subscriptionOf } from "../../../ports/store-examples.contract.ts";
import { IndexDamagedError } from "../../../ports/store.ts";
import { migratedFile } from "../migrations/migrated-file.contract.ts";
import type { SqlDatabase } from "../schema.ts";
import { SqlStore } from "../sql-store.ts";
import type { StoreError } from "../store-error.ts";
import { createSqliteBackend } from "./sqlite-backend.ts";

let store: SqlStore;
let database: SqlDatabase;
beforeEach(async () => {
  const backend = createSqliteBackend(await migratedFile());
  const open = async (): Promise<SqlDatabase> => (database = await backend.open());
  store = new SqlStore({ ...backend, open }, silentLogger);
  await store.start();
});
afterEach(async () => store.stop());

async function change(statement: RawBuilder<unknown>): Promise<void> {
  await statement.execute(database.relaxed);
}

it("returns a subscription whose group became bytes as damaged, with a text as its group, and deletes it", async () => {
  const { id, epoch } = subscriptionOf(1);
  await store.insertSubscription(subscriptionOf(1), 0);
  await change(sql`update subscriptions set group_id = cast(group_id as blob)`);
  expect(await store.findSubscription(id)).toMatchObject({ state: "damaged", groupId: expect.any(String) });
  expect(await store.deleteSubscription({ id, epoch })).toBe(true);
});

it("deletes a damaged subscription whose epoch became NULL", async () => {
  await store.insertSubscription(subscriptionOf(1), 0);
  // A copy of the table has no constraints, since damage does not respect them either.
  await change(sql`create table copied as select * from subscriptions`);
  await change(sql`drop table subscriptions`);
  await change(sql`alter table copied rename to subscriptions`);
  await change(sql`update subscriptions set epoch = null`);
  const found = await store.findSubscription(subscriptionOf(1).id);
  expect(found).toMatchObject({ state: "damaged" });
  expect(found && (await store.deleteSubscription(found))).toBe(true);
});

describe("a bit above 2^53 that flipped", () => {
  const faults: StoreError[] = [];
  beforeEach(async () => {
    await store.stop();
    faults.length = 0;
    const backend = createSqliteBackend(await migratedFile(), { onFault: (fault) => void faults.push(fault) });
    store = new SqlStore({ ...backend, open: async () => (database = await backend.open()) }, silentLogger);
    await store.start();
  });

  it.each(
    ["cursor", "notified_count", "retry_at", "epoch", "created_at", "checksum"].flatMap((column) =>
      [53, 55, 62].map((bit) => [column, bit] as const),
    ),
  )("a flipped bit in %s (bit %i) damages only its subscription, which can be deleted", async (column, bit) => {
    const cursor = toPosition(0, 1025); // A flip of bit 62 adds 2^62, whose residue is 1, and rounding removes 1: the sum of the residues stays.
    for (const number of [1, 2]) await store.insertSubscription(subscriptionOf(number, { cursor }), 0);
    const { id } = subscriptionOf(1);
    const name = sql.ref(column);
    await change(sql`update subscriptions set ${name} = ${name} + (1 << ${bit}) where id = ${id}`);
    const found = await store.findSubscription(id);
    expect(found).toMatchObject({ state: "damaged" });
    expect(await store.listSubscriptions()).toEqual([found, subscriptionOf(2, { cursor })]);
    expect(found && (await store.deleteSubscription(found))).toBe(true);
    expect(faults).toEqual([]);
  });

  it.each(["first_sequence", "events_before", "first_position", "byte_count", "log_index"])(
    "a flipped bit 54 in %s damages only its batch, which can be repaired",
    async (column) => {
      await store.applyBlocks(group, history);
      const name = sql.ref(column);
      await change(sql`update batches set ${name} = ${name} + (1 << 54) where first_sequence = 4`);
      const range = { after: positionZero, upTo: endOfBlock(6), topic: undefined, batchesMax: 99, bytesMax: 1 << 30 };
      await expect(store.readBatches(group, range)).rejects.toBeInstanceOf(IndexDamagedError);
      let repaired = 0;
      for (const block of history) repaired += (await store.repairBatches(group, block)).length;
      expect(repaired).toBe(1);
      expect(await store.readBatches(group, range)).toEqual(history.flatMap(({ batches }) => batches));
      expect(faults).toEqual([]);
    },
  );
});

it("replaces and removes filters whose start became an empty blob, and finds their session damaged", async () => {
  const { newId: id, newEpoch: epoch } = claimOf();
  await store.sessions.claimSession(claimOf({ position: positionZero }));
  const put = [1, 2].map((number) => filterOf(number, { startsAfter: positionZero }));
  await store.sessions.saveSessionFilters({ id, epoch }, { put, removed: [], generation: 0 });
  await change(sql`update session_subscriptions set starts_after = x''`);
  const again = { put: put.slice(0, 1), removed: [], generation: 0 };
  expect(await store.sessions.saveSessionFilters({ id, epoch }, again)).toBe("saved");
  expect(await store.sessions.removeSessionFilter(filterOf(2).id)).toBe(true);
  expect(await store.sessions.findSession(id)).toBeUndefined();
});

it.each<[string, RawBuilder<unknown>]>([
  ["became a text", sql`cast(variants as text)`],
  ["was cut", sql`substr(variants, 1, 20)`],
])("lists a transaction of the journal without its versions if their column %s", async (_, variants) => {
  const sender = `0x${"11".repeat(20)}` as const;
  const one = { hash: `0x${"22".repeat(32)}`, raw: Uint8Array.of(1) } as const;
  await store.recordTransactions([{ groupId: group, sender, nonce: 1, variants: [one], recordedAt: 1 }]);
  await change(sql`update journal set variants = ${variants}`);
  expect(await store.listTransactions(group, sender)).toMatchObject([{ nonce: 1, variants: [] }]);
});

it("takes no due session whose cursor became an empty blob", async () => {
  const { newId: id, newEpoch: epoch, will, willDelayMs, expiryMs } = claimOf();
  await store.sessions.claimSession(claimOf({ position: positionZero }));
  await store.sessions.detachSession({ id, epoch }, { will, willDelayMs, expiryMs });
  const [key] = await store.sessions.listDetached(group, 1);
  await change(sql`update sessions set cursor = x''`);
  expect(await store.sessions.takeDueSession(key ?? { id, epoch }, undefined)).toBeUndefined();
});
