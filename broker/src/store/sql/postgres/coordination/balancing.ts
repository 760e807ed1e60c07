import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import { type Gift, planBalance, type Request, type SubscriptionCount } from "../../../../domain/balance.ts";
import { webhookFormats } from "../../../../domain/subscription.ts";
import type { NodeId } from "../../../../domain/node.ts";
import { type Balanced, giftsMax, movesMax } from "../../../../ports/coordinator.ts";
import { hintsOfTaken } from "../../../hints.ts";
import { nextEpochCheckSql } from "../../row-checksums.ts";
import type { Schema, SubscriptionTable } from "../../schema.ts";
import { sendHints } from "./hint-text.ts";
import { listDeliverers, removeExpired } from "./members.ts";

const nothing: Balanced = { assigned: 0, requested: 0 };

/** A subscription as the plan read it, and its new node. */
interface Move {
  readonly id: string;
  readonly epoch: number;
  readonly from: NodeId | undefined;
  readonly to: NodeId;
}

/** Members, and the groups that each delivers. */
type Deliverers = Awaited<ReturnType<typeof listDeliverers>>;

/**
 * Maximum number of consecutive calls that do not count the subscriptions, which takes the server 0.2 s for 100,000. A call skips the count if the last count
 * found nothing to do, and the members and their groups are unchanged. The next count finds imbalance from another cause, such as new subscriptions.
 */
const looksSkippedMax = 4;

/** Assigns subscriptions with a callback to nodes; one node at a time does this. */
export class Balancing {
  readonly #queries: Kysely<Schema>;
  /** The members and their groups at the last check, as text; undefined unless that check found nothing to do. */
  #settled: string | undefined;
  #skipped = 0;

  constructor(queries: Kysely<Schema>) {
    this.#queries = queries;
  }

  async balance(nodeId: NodeId): Promise<Balanced> {
    const hasRemoved = await removeExpired(this.#queries);
    if (!hasRemoved && (await this.#isSettled())) return nothing;
    return this.#queries.transaction().execute(async (transaction) => {
      const moves = (await isFree(transaction)) ? await this.#move(transaction, nodeId) : nothing;
      if (hasRemoved || moves.assigned + moves.requested > 0) await sendHints(transaction, [{ kind: "nodes" }]);
      return moves;
    });
  }

  async #isSettled(): Promise<boolean> {
    const isSame = this.#settled !== undefined && viewOf(await listDeliverers(this.#queries)) === this.#settled;
    this.#skipped = isSame && this.#skipped < looksSkippedMax ? this.#skipped + 1 : 0;
    return this.#skipped > 0;
  }

  async #move(transaction: Transaction<Schema>, nodeId: NodeId): Promise<Balanced> {
    this.#settled = undefined;
    const nodes = await listDeliverers(transaction);
    if (!nodes.some(({ id }) => id === nodeId)) return nothing;
    const moves = await move(transaction, nodes);
    if (moves.assigned + moves.requested === 0) this.#settled = viewOf(nodes);
    return moves;
  }
}

function viewOf(nodes: Deliverers): string {
  const each = nodes.map(({ id, groups }) => JSON.stringify([id, ...groups]));
  return each.toSorted().join();
}

/** Takes the lock for balancing, which covers only the tables of this schema. Returns false if another node has it. */
async function isFree(transaction: Transaction<Schema>): Promise<boolean> {
  const { rows } = await sql<{ readonly free: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('stele balance ' || current_schema(), 0)) as free`.execute(
    transaction,
  );
  return rows[0]?.free ?? false;
}

async function move(transaction: Transaction<Schema>, nodes: Deliverers): Promise<Balanced> {
  const plan = planBalance({ nodes, counts: await count(transaction) }, { giftsMax, requestsMax: movesMax });
  const gifts = await chooseOrphans(transaction, plan.gifts);
  const requests = await chooseSettled(transaction, plan.requests);
  const give = sql`owner = given.node_id, epoch = kept.epoch + 1, wanted_by = null,
    progress_check = kept.progress_check + ${nextEpochCheckSql(sql`kept.epoch`)}`;
  const given = await change(transaction, gifts, give);
  const asked = await change(transaction, requests, sql`wanted_by = given.node_id`);
  await sendHints(transaction, hintsOfTaken(given));
  return { assigned: given.length, requested: asked.length, unserved: plan.unserved };
}

async function count(transaction: Transaction<Schema>): Promise<readonly SubscriptionCount[]> {
  const columns = ["group_id", "state", "owner", "wanted_by"] as const;
  const rows = await transaction
    .selectFrom("subscriptions")
    .select(columns)
    .select(({ fn }) => fn.countAll<number>().as("count"))
    .where("interface_type", "in", webhookFormats)
    .groupBy(columns)
    .execute();
  return rows.map(toCount);
}

function toCount(
  row: Pick<SubscriptionTable, "group_id" | "state" | "owner" | "wanted_by"> & { readonly count: number },
) {
  return {
    groupId: row.group_id as SubscriptionCount["groupId"],
    state: row.state as SubscriptionCount["state"],
    owner: (row.owner ?? undefined) as SubscriptionCount["owner"],
    wantedBy: (row.wanted_by ?? undefined) as SubscriptionCount["wantedBy"],
    count: row.count,
  };
}

async function chooseOrphans(transaction: Transaction<Schema>, gifts: readonly Gift[]): Promise<readonly Move[]> {
  const moves: Move[] = [];
  for (const lot of lotsOf(gifts, ({ groupId, state }) => `${groupId} ${state}`)) {
    const { groupId, state } = lot.of;
    const orphans = candidates(transaction, { groupId, state, countMax: lot.count })
      .where(sql<boolean>`not exists (select from nodes where node_id = owner)`)
      .execute();
    moves.push(...assign(await orphans, lot.moves));
  }
  return moves;
}

async function chooseSettled(transaction: Transaction<Schema>, requests: readonly Request[]): Promise<readonly Move[]> {
  const moves: Move[] = [];
  for (const lot of lotsOf(requests, ({ groupId, from }) => `${groupId} ${from}`)) {
    const { groupId, from } = lot.of;
    const settled = candidates(transaction, { groupId, state: "active", countMax: lot.count })
      .where("owner", "=", from)
      .where(sql<boolean>`not exists (select from nodes where node_id = wanted_by)`)
      .execute();
    moves.push(...assign(await settled, lot.moves));
  }
  return moves;
}

interface Wanted {
  readonly groupId: string;
  readonly state: string;
  readonly countMax: number;
}

function candidates(transaction: Transaction<Schema>, { groupId, state, countMax }: Wanted) {
  return transaction
    .selectFrom("subscriptions")
    .select(["id", "epoch", "owner"])
    .where("group_id", "=", groupId)
    .where("state", "=", state)
    .where("interface_type", "in", webhookFormats)
    .orderBy("id")
    .limit(countMax);
}

/** Planned moves that choose from the same set of subscriptions. */
interface Lot<Planned> {
  readonly of: Planned;
  readonly moves: readonly Planned[];
  readonly count: number;
}

function lotsOf<Planned extends Gift | Request>(
  planned: readonly Planned[],
  keyOf: (one: Planned) => string,
): readonly Lot<Planned>[] {
  const lots = new Map<string, Lot<Planned>>();
  for (const one of planned) {
    const { moves, count } = lots.get(keyOf(one)) ?? { moves: [], count: 0 };
    lots.set(keyOf(one), { of: one, moves: [...moves, one], count: count + one.count });
  }
  return [...lots.values()];
}

function assign(
  rows: readonly Pick<SubscriptionTable, "id" | "epoch" | "owner">[],
  planned: readonly Pick<Gift, "to" | "count">[],
): readonly Move[] {
  const takers = planned.flatMap(({ to, count }) => Array.from({ length: count }, () => to));
  return rows.flatMap(({ id, epoch, owner }, index) => {
    const to = takers[index];
    const from = (owner ?? undefined) as NodeId | undefined; // Unchanged since it was stored.
    return to === undefined ? [] : [{ id, epoch, from, to }];
  });
}

/** Makes moves, except of subscriptions whose epoch has changed since the plan read them. Returns the moves that it made. */
async function change(
  transaction: Transaction<Schema>,
  moves: readonly Move[],
  setting: RawBuilder<unknown>,
): Promise<readonly Move[]> {
  const ordered = moves.toSorted((left, right) => (left.id < right.id ? -1 : 1)); // In the order in which all transactions lock them.
  const changed: Move[] = [];
  for (let start = 0; start < ordered.length; start += movesMax) {
    changed.push(...(await changePage(transaction, ordered.slice(start, start + movesMax), setting)));
  }
  return changed;
}

async function changePage(
  transaction: Transaction<Schema>,
  moves: readonly Move[],
  setting: RawBuilder<unknown>,
): Promise<readonly Move[]> {
  const ids = moves.map(({ id }) => id);
  const epochs = moves.map(({ epoch }) => epoch);
  const nodes = moves.map(({ to }) => to);
  const { rows } = await sql<Pick<Move, "id">>`
    with given as materialized (
      select * from unnest(${ids}::text[], ${epochs}::bigint[], ${nodes}::text[]) as given (id, epoch, node_id)
    ),
    held as materialized (
      select kept.id from subscriptions as kept join given on given.id = kept.id and given.epoch = kept.epoch
      order by kept.id for no key update of kept
    )
    update subscriptions as kept set ${setting} from given join held on held.id = given.id
    where kept.id = given.id and kept.epoch = given.epoch
    returning kept.id`.execute(transaction);
  const changed = new Set(rows.map(({ id }) => id));
  return moves.filter(({ id }) => changed.has(id));
}
