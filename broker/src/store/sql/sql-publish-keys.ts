import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import { fromStored } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import {
  type DamagedKeyRow,
  type Fenced,
  type FencedKey,
  type HeldKey,
  type KeyClaim,
  type KeyCounts,
  type PublishKey,
  type PublishKeyRow,
  type PublishKeys,
  type TakenKey,
  sharedAccountOf,
  toFencedKey,
} from "../../ports/publish-keys.ts";
import { pagesOf } from "./pages.ts";
import { checksumOfRow, withChecksum } from "./row-checksums.ts";
import type { PublishKeyTable, Schema, SqlDatabase } from "./schema.ts";
import { rollbackLock } from "./subscriptions/sql-subscriptions.ts";

/** Maximum number of keys that one statement counts. */
const countedPerPageMax = 10_000;

/** The keys of one scope that were counted so far, and the last of them. */
interface CountedScope {
  readonly scope: string;
  readonly key: string;
  readonly count: number;
}

/** The publish keys' part of the store. */
export class SqlPublishKeys implements PublishKeys {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** Inserts in the order of the keys, so that two nodes that record the same keys cannot deadlock. */
  async recordPublishKeys(claims: readonly KeyClaim[]): Promise<readonly TakenKey[]> {
    if (claims.length === 0) return [];
    const { fenced, held } = await this.#database.urgent.transaction().execute(async (transaction) => {
      const { own, fenced } = await this.#fence(transaction, claims);
      const sorted = own.map(toRow).toSorted((left, right) => (idOf(left) < idOf(right) ? -1 : 1));
      const held: PublishKeyTable[] = [];
      const replacing = new Set(own.filter(({ mayReplace }) => mayReplace).map((claim) => idOf(toKey(claim))));
      for (const page of pagesOf(sorted)) held.push(...(await recordPage(transaction, page, replacing)));
      return { fenced, held };
    });
    const tokens = new Map(claims.map((row) => [idOf(toKey(row)), row.token]));
    return [...fenced.map(toFencedKey), ...held.filter((row) => tokens.get(idOf(row)) !== row.token).map(fromRow)];
  }

  async findPublishKey(key: PublishKey): Promise<PublishKeyRow | DamagedKeyRow | undefined> {
    const row = await this.#database.relaxed
      .selectFrom("publish_keys")
      .selectAll()
      .where(keyIn([toKey(key)]))
      .executeTakeFirst();
    return row && fromRow(row);
  }

  async movePublishKey(row: PublishKeyRow, sender: string): Promise<boolean> {
    const { checksum } = toRow({ ...row, sender });
    const { numUpdatedRows } = await this.#database.durable
      .updateTable("publish_keys")
      .set({ sender, checksum })
      .where(keyIn([toKey(row)]))
      .where("token", "=", row.token)
      .where("sender", "=", row.sender)
      .executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
  }

  async releasePublishKeys(rows: readonly HeldKey[]): Promise<readonly FencedKey[]> {
    if (rows.length === 0) return [];
    return this.#database.durable.transaction().execute(async (transaction) => {
      const { own, fenced } = await this.#fence(transaction, rows);
      for (const page of pagesOf(own)) await release(transaction, page.map(toHeldColumns));
      return fenced.map(toFencedKey);
    });
  }

  async expirePublishKeys(
    groupId: GroupId,
    { before, atMost }: { readonly before: number; readonly atMost: number },
  ): Promise<number> {
    const old = this.#database.durable
      .selectFrom("publish_keys")
      .select(["group_id", "scope", "key"])
      .where("group_id", "=", groupId)
      .where("recorded_at", "<", before)
      .orderBy("recorded_at")
      .limit(atMost);
    const { numDeletedRows } = await this.#database.durable
      .deleteFrom("publish_keys")
      .where(sql<boolean>`(group_id, scope, key) in (${old})`)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  /** Counts page by page: SQLite would take a third of a second for a million rows, and block the event loop for that time. */
  async countPublishKeys(groupId: GroupId, countMin: number): Promise<KeyCounts> {
    const byAccount = new Map<string, number>();
    const shared = new Map<string, number>(); // A tenant's scopes need not follow one another: the database decides how it compares their slash.
    let total = 0;
    let last: CountedScope | undefined;
    for (let isMore = true; isMore; ) {
      const page = await countPage(this.#database.relaxed, groupId, last).execute();
      const totalBefore = total;
      for (const { scope, count, key } of page) {
        last = { scope, key, count: count + (last?.scope === scope ? last.count : 0) };
        if (last.count >= countMin) byAccount.set(scope, last.count);
        const account = sharedAccountOf(scope);
        if (account !== undefined) shared.set(account, (shared.get(account) ?? 0) + count);
        total += count;
      }
      isMore = total - totalBefore === countedPerPageMax;
    }
    for (const [account, count] of shared) if (count >= countMin) byAccount.set(account, count);
    return { total, byAccount };
  }

  async dropPublishKeys(groupId: GroupId, scope: string): Promise<void> {
    const { relaxed } = this.#database;
    await relaxed.deleteFrom("publish_keys").where("group_id", "=", groupId).where("scope", "=", scope).execute();
  }

  /**
   * Separates the keys that a fence excludes, since its session has another epoch or is gone, from the others. Locks the sessions of the fences until the
   * transaction ends. Like every change of several sessions, it waits for a rollback of their groups, and locks in the order of identifiers.
   */
  async #fence<Key extends PublishKey & Fenced>(
    transaction: Transaction<Schema>,
    keys: readonly Key[],
  ): Promise<{ readonly own: readonly Key[]; readonly fenced: readonly Key[] }> {
    const withFence = keys.filter(({ fence }) => fence !== undefined);
    if (withFence.length === 0) return { own: keys, fenced: [] };
    for (const groupId of new Set(withFence.map((key) => key.groupId)))
      await this.#database.lock(transaction, rollbackLock(groupId), "shared");
    const ids = [...new Set(withFence.flatMap(({ fence }) => fence?.id ?? []))].toSorted();
    const query = transaction
      .selectFrom("sessions")
      .select(["session_id", "epoch"])
      .where("session_id", "in", this.#database.column(ids))
      .orderBy("session_id");
    const rows = await this.#database.locking(query).execute();
    const epochs = new Map<string, number>(rows.map(({ session_id, epoch }) => [session_id, epoch]));
    const isOwn = ({ fence }: Key): boolean => fence === undefined || epochs.get(fence.id) === fence.epoch;
    return { own: keys.filter(isOwn), fenced: keys.filter((key) => !isOwn(key)) };
  }
}

type KeyColumns = Pick<PublishKeyTable, "group_id" | "scope" | "key">;
type HeldColumns = KeyColumns & Pick<PublishKeyTable, "token" | "sender">;

/** Inserts the rows of the page whose keys are free or in `replacing`. Returns the stored rows that hold the other keys. */
async function recordPage(
  transaction: Kysely<Schema>,
  page: readonly PublishKeyTable[],
  replacing: ReadonlySet<string>,
): Promise<readonly PublishKeyTable[]> {
  const recorded = await transaction
    .insertInto("publish_keys")
    .values(page)
    .onConflict((conflict) => conflict.columns(["group_id", "scope", "key"]).doNothing())
    .returning(["group_id", "scope", "key"])
    .execute();
  if (recorded.length === page.length) return [];
  const ids = new Set(recorded.map(idOf));
  const held = page.filter((row) => !ids.has(idOf(row)));
  const rows: PublishKeyTable[] = [];
  for (const some of pagesOf(held)) {
    rows.push(...(await transaction.selectFrom("publish_keys").selectAll().where(keyIn(some)).execute()));
  }
  const digests = new Map(held.map((row) => [idOf(row), row.digest]));
  const replaced = rows.filter(
    (row) => replacing.has(idOf(row)) && isIntact(row) && row.digest !== digests.get(idOf(row)),
  );
  for (const some of pagesOf(replaced)) await release(transaction, some);
  const staying = rows.filter((row) => !replaced.includes(row));
  const found = new Set(staying.map(idOf));
  const free = held.filter((row) => !found.has(idOf(row)));
  // The keys of the replaced rows, and those that another node released after the insert.
  return free.length === 0 ? staying : [...staying, ...(await recordPage(transaction, free, replacing))];
}

/** Removes the rows of keys that still have these tokens and senders. */
async function release(transaction: Kysely<Schema>, held: readonly HeldColumns[]): Promise<void> {
  const holders = held.map(({ token, sender }) => sql`(${token}, ${sender})`);
  await transaction
    .deleteFrom("publish_keys")
    .where(keyIn(held))
    .where(sql<boolean>`(token, sender) in (values ${sql.join(holders)})`)
    .execute();
}

/** Whether a row has one of the keys, in the only syntax by which SQLite compares a row with a list of rows. */
function keyIn(keys: readonly KeyColumns[]): RawBuilder<boolean> {
  const rows = keys.map(({ group_id, scope, key }) => sql`(${group_id}, ${scope}, ${key})`);
  return sql<boolean>`(group_id, scope, key) in (values ${sql.join(rows)})`;
}

function idOf({ group_id, scope, key }: KeyColumns): string {
  return JSON.stringify([group_id, scope, key]);
}

function toKey({ groupId, scope, key }: PublishKey): KeyColumns {
  return { group_id: groupId, scope, key };
}

function toHeldColumns({ token, sender, ...key }: HeldKey): HeldColumns {
  return { ...toKey(key), token, sender };
}

function isIntact(row: PublishKeyTable): boolean {
  return checksumOfRow("publish_keys", row) === row.checksum;
}

function toRow(row: PublishKeyRow): PublishKeyTable {
  const { token, topic, after, digest, sender, recordedAt } = row;
  return withChecksum("publish_keys", {
    ...toKey(row),
    token,
    topic,
    after_position: after,
    digest,
    sender,
    recorded_at: recordedAt,
  });
}

function fromRow(row: PublishKeyTable): PublishKeyRow | DamagedKeyRow {
  const key = { groupId: row.group_id as GroupId, scope: row.scope, key: row.key }; // Unchanged since it was stored.
  if (!isIntact(row)) return { ...key, isDamaged: true };
  return {
    ...key,
    token: row.token,
    topic: parseTopicName(row.topic),
    after: fromStored(row.after_position),
    digest: row.digest,
    sender: row.sender,
    recordedAt: row.recorded_at,
  };
}

/** Counts the next keys by scope, in the order of the primary key. */
export function countPage(database: Kysely<Schema>, groupId: GroupId, after: Omit<CountedScope, "count"> | undefined) {
  const page = database
    .selectFrom("publish_keys")
    .select(["scope", "key"])
    .where("group_id", "=", groupId)
    .$if(after !== undefined, (query) => query.where(sql<boolean>`(scope, key) > (${after?.scope}, ${after?.key})`))
    .orderBy("scope")
    .orderBy("key")
    .limit(countedPerPageMax);
  return database
    .selectFrom(page.as("page"))
    .select(({ fn }) => ["scope", fn.max("key").as("key"), fn.countAll<number>().as("count")])
    .groupBy("scope")
    .orderBy("scope");
}
