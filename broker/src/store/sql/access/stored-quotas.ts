import { sql, type RawBuilder, type Transaction } from "kysely";
import type { OverQuota, StoredQuota } from "../../../domain/quota.ts";
import type { Schema, SqlDatabase, SubscriptionTable } from "../schema.ts";

/** A row that is about to be written. */
type NewRow = Pick<SubscriptionTable, "id" | "receiver">;

/** What a quota counts: stored rows, and rows that were admitted since. */
interface Tally {
  count: number;
  /** Receivers of callbacks, if the quota counts these; undefined if it counts rows. */
  readonly hosts: Set<string | null> | undefined;
}

/** Counts rows against quotas in the transaction that writes them. It holds a lock for each count, so that the counts are exact across all nodes. */
export class QuotaTallies {
  readonly #database: SqlDatabase;
  readonly #transaction: Transaction<Schema>;
  readonly #tallies = new Map<string, Tally>();

  private constructor(database: SqlDatabase, transaction: Transaction<Schema>) {
    this.#database = database;
    this.#transaction = transaction;
  }

  /** Reads what the quotas count. `except` is a subscription that is about to change: its present receiver does not count. */
  static async read(
    database: SqlDatabase,
    transaction: Transaction<Schema>,
    { quotas, except }: { readonly quotas: readonly StoredQuota[]; readonly except?: string | undefined },
  ): Promise<QuotaTallies> {
    const tallies = new QuotaTallies(database, transaction);
    const byName = new Map(quotas.map((quota) => [nameOf(quota), quota]));
    // Always in the same order, so that transactions of two nodes cannot deadlock.
    for (const name of [...byName.keys()].toSorted()) {
      const quota = byName.get(name);
      if (quota === undefined) continue;
      await database.lock(transaction, `quota ${name}`);
      tallies.#tallies.set(name, await tallies.#count(quota, except));
    }
    return tallies;
  }

  /** Counts a row that is about to be written, or returns the quota that it would exceed. */
  admit(quotas: readonly StoredQuota[], { receiver }: Pick<NewRow, "receiver">): OverQuota | undefined {
    const counted = quotas.flatMap((quota) => {
      const tally = this.#tallies.get(nameOf(quota));
      return tally === undefined ? [] : [{ quota, tally }];
    });
    const full = counted.find(({ quota, tally }) => isFull(tally, quota, receiver));
    if (full !== undefined) return { status: "over-quota", quota: full.quota };
    for (const { tally } of counted) {
      tally.count += 1;
      tally.hosts?.add(receiver);
    }
    return undefined;
  }

  async #count(quota: StoredQuota, except: string | undefined): Promise<Tally> {
    if (quota.what === "callbackHosts") return { count: 0, hosts: await this.#hosts(quota, except) };
    const table = quota.what === "sessions" ? "sessions" : "subscriptions";
    const { count } = await this.#transaction
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where(isCounted(this.#database, quota))
      .executeTakeFirstOrThrow();
    return { count, hosts: undefined };
  }

  async #hosts(quota: StoredQuota, except: string | undefined): Promise<Set<string | null>> {
    const rows = await this.#transaction
      .selectFrom("subscriptions")
      .select("receiver")
      .distinct()
      .where(isCounted(this.#database, quota))
      .$if(except !== undefined, (query) => query.where("id", "!=", except ?? ""))
      .execute();
    return new Set(rows.map(({ receiver }) => receiver));
  }
}

/** The first quota that one more session would exceed; undefined if there is none. */
export async function findExceededSessionQuota(
  database: SqlDatabase,
  transaction: Transaction<Schema>,
  quotas: readonly StoredQuota[],
): Promise<OverQuota | undefined> {
  if (quotas.length === 0) return undefined;
  const tallies = await QuotaTallies.read(database, transaction, { quotas });
  return tallies.admit(quotas, { receiver: null });
}

/** Selects the rows that a quota counts. The range from "name/" to "name0" holds exactly the names that begin with "name/", since "0" is the byte after "/". */
export function isCounted(database: Pick<SqlDatabase, "byBytes">, { of, name }: StoredQuota): RawBuilder<boolean> {
  const principal = database.byBytes("principal");
  if (of === "principal") return sql<boolean>`${principal} = ${name}`;
  return sql<boolean>`${principal} >= ${`${name}/`} and ${principal} < ${`${name}0`}`;
}

function isFull({ count, hosts }: Tally, { max }: StoredQuota, receiver: string | null): boolean {
  return hosts === undefined ? count >= max : !hosts.has(receiver) && hosts.size >= max;
}

/** The name of a count and of its lock. It omits the limit: nodes whose settings have different limits count the same rows. */
function nameOf({ of, name, what }: StoredQuota): string {
  return `${what} ${of} ${name}`;
}
