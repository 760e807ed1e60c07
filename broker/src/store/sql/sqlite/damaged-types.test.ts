import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach, expect, it } from "vitest";
import { positionZero } from "../../../domain/position.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { claimOf, filterOf } from "../../../ports/session-examples.contract.ts";
import { group, subscriptionOf } from "../../../ports/store-examples.contract.ts";
import { migratedFile } from "../migrations/migrated-file.contract.ts";
import type { SqlDatabase } from "../schema.ts";
import { SqlStore } from "../sql-store.ts";
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

it("returns a damaged subscription whose group became bytes with a text for its group, and deletes it", async () => {
  const { id, epoch } = subscriptionOf(1);
  await store.insertSubscription(subscriptionOf(1), 0);
  await change(sql`update subscriptions set group_id = cast(group_id as blob)`);
  expect(await store.findSubscription(id)).toMatchObject({ state: "damaged", groupId: expect.any(String) });
  expect(await store.deleteSubscription({ id, epoch })).toBe(true);
});

it("deletes a damaged subscription whose epoch became NULL", async () => {
  await store.insertSubscription(subscriptionOf(1), 0);
  // Damage passes by the constraints of a column; a copy of the table has none.
  await change(sql`create table copied as select * from subscriptions`);
  await change(sql`drop table subscriptions`);
  await change(sql`alter table copied rename to subscriptions`);
  await change(sql`update subscriptions set epoch = null`);
  const found = await store.findSubscription(subscriptionOf(1).id);
  expect(found).toMatchObject({ state: "damaged" });
  expect(found && (await store.deleteSubscription(found))).toBe(true);
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
