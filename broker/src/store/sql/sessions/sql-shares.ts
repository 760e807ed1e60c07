import { type Kysely, type RawBuilder, sql, type Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { before, minOf, type Position, positionZero } from "../../../domain/position.ts";
import { isShared } from "../../../domain/shared-filter.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { SessionId, SessionKey, SettledEvent, ShareId } from "../../../ports/session-store.ts";
import type {
  ReturnedPage,
  ShareGift,
  SharePlace,
  ShareStore,
  ShareTake,
  StoredShare,
} from "../../../ports/share-store.ts";
import { pagesById, rowsAtOnceMax } from "../pages-by-id.ts";
import { pagesOf } from "../pages.ts";
import type { ShareEventTable, ShareTable } from "./share-tables.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import { findOrBegin } from "./share-members.ts";
import { cursorCheck, cursorCheckSql, fromShareEventRow, fromShareRow, toShareEventRow } from "./share-rows.ts";
import { rollbackLock } from "../subscriptions/sql-subscriptions.ts";

/** A share with columns of its oldest event in `share_events`; these columns are null if the share has no event. */
interface PlaceRow extends ShareTable {
  readonly event_position: number | null;
  readonly event_topic: string | null;
  readonly event_checksum: number | null;
}

/**
 * Maximum number of unacknowledged events of shares in which one statement searches for returned events: SQLite takes up to 3 µs for each on the main thread,
 * and the members of a share may have a million.
 */
const checkedAtOnceMax = 2_000;

/** Events of shares in the order of the primary key: those after `after`, up to `upTo`, or up to the last one. */
export interface EventRange {
  readonly after: EventKey;
  readonly upTo: EventKey | undefined;
}

type EventKey = Pick<ShareEventTable, "share_id" | "position">;

/** No session has this epoch, so an event with it counts as returned. */
const noEpoch = -1;

/** The shares' part of the store. */
export class SqlShares implements ShareStore {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async findShare(groupId: GroupId, filter: TopicFilter): Promise<StoredShare | undefined> {
    const { relaxed } = this.#database;
    const row = await rowOf(relaxed, { groupId, filter }).executeTakeFirst();
    const share = row && fromShareRow(row);
    if (share !== undefined) return share;
    return relaxed.transaction().execute(async (transaction) => {
      await this.#database.lock(transaction, rollbackLock(groupId), "shared");
      return findOrBegin({ database: this.#database, transaction, groupId }, filter);
    });
  }

  async findShareCursors(
    groupId: GroupId,
    filters: readonly TopicFilter[],
  ): Promise<ReadonlyMap<TopicFilter, Position>> {
    if (filters.length === 0) return new Map();
    const rows = await findPlaces(this.#database, groupId, filters).execute();
    return new Map(rows.flatMap(toPlace));
  }

  async listReturned(id: ShareId, { after, atMost }: ReturnedPage): Promise<readonly SharePlace[]> {
    const { relaxed } = this.#database;
    const rows: ShareEventTable[] = [];
    for await (const range of this.#rangesAfter({ share_id: id, position: after }, id)) {
      rows.push(...(await findReturned(relaxed, range, atMost - rows.length).execute()));
      if (rows.length === atMost) break;
    }
    const places = rows.map(fromShareEventRow);
    const damaged = rows.filter((_, index) => places[index] === undefined);
    if (damaged.length > 0) {
      this.#database.damaged(`returned events of share ${id} (${damaged.length}) do not match their checksums`); // The call reports the damage.
      const positions = damaged.map(({ position }) => position);
      const deleting = relaxed.deleteFrom("share_events").where("share_id", "=", id).where("position", "in", positions);
      const { numDeletedRows } = await deleting.executeTakeFirst();
      // Read the page again: without its damaged rows it is too short, and the caller would treat it as the last page.
      if (numDeletedRows > 0n) return this.listReturned(id, { after, atMost });
    }
    return places.filter((place) => place !== undefined);
  }

  async findReturning(ids: readonly ShareId[]): Promise<readonly ShareId[]> {
    const found = new Set<string>();
    for await (const range of this.#rangesOf(ids)) {
      const rows = await findReturning(this.#database, ids, range).execute();
      for (const { share_id } of rows) found.add(share_id);
    }
    return [...found] as ShareId[]; // Unchanged since they were stored.
  }

  /** Ranges that together have every event of the given shares. A range that goes beyond the end of a share also has events of other shares. */
  async *#rangesOf(ids: readonly ShareId[]): AsyncIterable<EventRange> {
    const known = new Set<string>(ids);
    let left: readonly string[] = ids.toSorted(); // Ascending, as the primary key is.
    for (let [first] = left; first !== undefined; [first] = left) {
      let passed = first;
      for await (const range of this.#rangesAfter({ share_id: first, position: positionZero })) {
        yield range;
        if (range.upTo === undefined) return;
        passed = range.upTo.share_id;
        if (!known.has(passed)) break;
      }
      left = left.slice(1).filter((id) => id > passed);
    }
  }

  /** Ranges that together have every event after `first`, of one share or of all. With PostgreSQL one range has all: its statements block no event loop. */
  async *#rangesAfter(first: EventKey, only?: ShareId): AsyncIterable<EventRange> {
    let after = first;
    for (;;) {
      const { isShared: hasServer, relaxed } = this.#database;
      const upTo = hasServer ? undefined : await findRangeEnd(relaxed, after, only).executeTakeFirst();
      yield { after, upTo };
      if (upTo === undefined) return;
      after = upTo;
    }
  }

  async takeShared({ id, epoch, cursor, gifts, dropped }: ShareTake): Promise<"taken" | "refused" | "member-refused"> {
    return this.#durable.transaction().execute(async (transaction) => {
      if (!(await this.#holdMembers(transaction, gifts))) return "member-refused";
      const { numUpdatedRows } = await transaction
        .updateTable("shares")
        .set({ cursor, epoch: epoch + 1, cursor_check: cursorCheck({ cursor, epoch: epoch + 1 }) })
        .where("share_id", "=", id)
        .where("epoch", "=", epoch)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return "refused";
      const gone = [...dropped, ...gifts.map(({ position }) => position)];
      await deleteEvents(transaction, { share: id, positions: gone });
      for (const page of pagesOf(gifts.map((gift) => toRow(id, gift)))) {
        await transaction.insertInto("share_events").values(page).execute();
      }
      return "taken";
    });
  }

  async returnShared({ id, gifts }: Pick<ShareTake, "id" | "gifts">): Promise<void> {
    await this.#durable.transaction().execute(async (transaction) => {
      await transaction
        .updateTable("shares")
        .set(({ eb }) => ({ epoch: eb("epoch", "+", 1), cursor_check: checkAfter(sql`cursor`) }))
        .where("share_id", "=", id)
        .execute();
      for (const { position, to } of gifts) {
        await transaction
          .updateTable("share_events")
          .set({ session_epoch: noEpoch })
          .where("share_id", "=", id)
          .where("position", "=", position)
          .where("session_id", "=", to.id)
          .where("given_epoch", "=", to.epoch) // `session_epoch` may have changed since.
          .execute();
      }
    });
  }

  /** For takes and returns. Nodes survive a crash of the database server: the crash must not undo a change that they have reported to clients. */
  get #durable(): Kysely<Schema> {
    const { isShared: hasServer, durable, relaxed } = this.#database;
    return hasServer ? durable : relaxed;
  }

  /** Locks the members' sessions, so that their epochs stay. Returns whether all have the given epochs. */
  async #holdMembers(transaction: Transaction<Schema>, gifts: readonly ShareGift[]): Promise<boolean> {
    const members = new Map(gifts.map(({ to }) => [to.id, to.epoch]));
    if (members.size === 0) return true;
    const query = transaction
      .selectFrom("sessions")
      .select(["session_id", "epoch"])
      .where("session_id", "in", this.#database.column([...members.keys()]))
      .orderBy("session_id");
    const rows = await this.#database.locking(query).execute();
    const intact = rows.filter(({ session_id, epoch }) => members.get(session_id as SessionId) === epoch);
    return intact.length === members.size;
  }
}

/** Deletes events that a session has settled. The transaction has checked the session's epoch. */
export async function settle(
  transaction: Transaction<Schema>,
  id: SessionId,
  settled: readonly SettledEvent[],
): Promise<void> {
  const pages = new Map<string, { readonly share: ShareId; readonly epoch: number; readonly positions: Position[] }>();
  for (const { share, position, givenEpoch: epoch } of settled) {
    const page = pages.get(`${share} ${epoch}`);
    if (page === undefined) pages.set(`${share} ${epoch}`, { share, epoch, positions: [position] });
    else page.positions.push(position);
  }
  for (const { share, epoch, positions } of pages.values())
    await deleteEvents(transaction, { share, positions, holder: { id, epoch } });
}

/** Raises the session epoch in the events of sessions whose epoch the transaction raises, so that these events do not count as returned. */
export async function keepShared(transaction: Transaction<Schema>, ids: readonly string[]): Promise<void> {
  for (const page of pagesOf(ids)) {
    await transaction
      .updateTable("share_events")
      .set(({ eb }) => ({ session_epoch: eb("session_epoch", "+", 1) }))
      .where("session_id", "in", page)
      .execute();
  }
}

/** Moves the cursors of a group's shares beyond `end` back to it, deletes events after it, and gives every share a new epoch. */
export async function cutBackShares(
  transaction: Transaction<Schema>,
  { groupId, end }: { readonly groupId: GroupId; readonly end: Position },
  database: SqlDatabase,
): Promise<void> {
  const cursor = sql<number>`case when cursor > ${end} then ${end} else cursor end`;
  for await (const rows of pagesById((after) => findPage(transaction, groupId, after).execute())) {
    const ids = database.column(rows.map(({ id }) => id));
    await transaction
      .updateTable("shares")
      .set(({ eb }) => ({ cursor, cursor_check: checkAfter(cursor), epoch: eb("epoch", "+", 1) }))
      .where("share_id", "in", ids)
      .execute();
    await transaction.deleteFrom("share_events").where("share_id", "in", ids).where("position", ">", end).execute();
  }
}

function findPage(transaction: Transaction<Schema>, groupId: GroupId, after: string) {
  return transaction
    .selectFrom("shares")
    .select("share_id as id")
    .where("group_id", "=", groupId)
    .where("share_id", ">", after)
    .orderBy("share_id")
    .limit(rowsAtOnceMax);
}

/** The `cursor_check` of a share with its next epoch; -1 for a damaged row, so that it stays damaged. */
function checkAfter(cursor: RawBuilder<number>): RawBuilder<number> {
  const isIntact = sql`cursor_check = ${cursorCheckSql(sql`cursor`, sql`epoch`)}`;
  return sql<number>`case when ${isIntact} then ${cursorCheckSql(cursor, sql`epoch + 1`)} else -1 end`;
}

/** Whether an event is returned: its session is gone or has another epoch, since the end of a connection changes the session's epoch. */
const isReturned = sql<boolean>`not exists (
  select 1 from sessions
  where sessions.session_id = share_events.session_id and sessions.epoch = share_events.session_epoch)`;

/** The end of a range of {@link checkedAtOnceMax} events of one share, or of all; none if there are fewer. */
export function findRangeEnd(database: Kysely<Schema>, after: EventKey, only?: ShareId) {
  const { share_id: share, position } = after;
  const events = database.selectFrom("share_events").select(["share_id", "position"]);
  const following =
    only === undefined
      ? events.where(sql<boolean>`(share_id, position) > (${share}, ${position})`).orderBy("share_id")
      : events.where("share_id", "=", only).where("position", ">", position);
  return following
    .orderBy("position")
    .limit(1)
    .offset(checkedAtOnceMax - 1);
}

/** The filters of shares that a session is a member of. */
export async function sharedFiltersOf(transaction: Transaction<Schema>, id: SessionId): Promise<readonly string[]> {
  const query = transaction.selectFrom("session_subscriptions").select("filter").where("session_id", "=", id);
  return (await query.execute()).map(({ filter }) => filter).filter(isShared);
}

/** See ShareStore.listReturned. The range has events of one share. */
export function findReturned(database: Kysely<Schema>, { after, upTo }: EventRange, atMost: number) {
  return database
    .selectFrom("share_events")
    .selectAll()
    .where("share_id", "=", after.share_id)
    .where("position", ">", after.position)
    .$if(upTo !== undefined, (query) => query.where("position", "<=", upTo?.position ?? 0))
    .where(isReturned)
    .orderBy("position")
    .limit(atMost);
}

/** See ShareStore.findShareCursors. */
export function findPlaces({ relaxed, column }: SqlDatabase, groupId: GroupId, filters: readonly TopicFilter[]) {
  return relaxed
    .selectFrom("shares")
    .leftJoin("share_events", (join) =>
      join.onRef("share_events.share_id", "=", "shares.share_id").on("share_events.position", "=", (builder) =>
        builder
          .selectFrom("share_events as oldest")
          .whereRef("oldest.share_id", "=", "shares.share_id")
          .select(({ fn }) => fn.min("oldest.position").as("position")),
      ),
    )
    .selectAll("shares")
    .select(["position as event_position", "topic as event_topic", "share_events.checksum as event_checksum"])
    .where("group_id", "=", groupId)
    .where("filter", "in", column(filters));
}

/** Omits a damaged share. Ignores a damaged event, which `listReturned` reports once the event is returned. */
function toPlace(row: PlaceRow): readonly (readonly [TopicFilter, Position])[] {
  const share = fromShareRow(row);
  if (share === undefined) return [];
  const oldest = oldestOf(row);
  const place = oldest === undefined ? share.cursor : minOf(share.cursor, before(oldest.position));
  return [[row.filter as TopicFilter, place]]; // Unchanged since it was stored.
}

function oldestOf({ share_id, event_position: position, event_topic: topic, event_checksum: checksum }: PlaceRow) {
  if (position === null || topic === null || checksum === null) return undefined;
  return fromShareEventRow({ share_id, position, topic, checksum });
}

/** See ShareStore.findReturning. */
export function findReturning(database: SqlDatabase, ids: readonly ShareId[], { after, upTo }: EventRange) {
  const query = database.relaxed.selectFrom("share_events").select("share_id").distinct().where(isReturned);
  if (database.isShared) return query.where("share_id", "in", database.column(ids)); // PostgreSQL checks all in one statement.
  // The expression keeps SQLite from beginning with the shares: it would read all their events for each range.
  return query
    .where(sql<boolean>`(share_id, position) > (${after.share_id}, ${after.position})`)
    .$if(upTo !== undefined, (rest) =>
      rest.where(sql<boolean>`(share_id, position) <= (${upTo?.share_id}, ${upTo?.position})`),
    )
    .where(sql<string>`(share_id || '')`, "in", database.column(ids));
}

function rowOf(database: Kysely<Schema>, { groupId, filter }: { readonly groupId: string; readonly filter: string }) {
  return database.selectFrom("shares").selectAll().where("group_id", "=", groupId).where("filter", "=", filter);
}

async function deleteEvents(
  transaction: Transaction<Schema>,
  { share, positions, holder }: { share: ShareId; positions: readonly Position[]; holder?: SessionKey },
): Promise<void> {
  for (const page of pagesOf(positions)) {
    const deleting = transaction.deleteFrom("share_events").where("share_id", "=", share).where("position", "in", page);
    const own = holder && deleting.where("session_id", "=", holder.id).where("given_epoch", "=", holder.epoch);
    await (own ?? deleting).execute();
  }
}

function toRow(share: ShareId, { position, topic, to }: ShareGift) {
  const place = { share_id: share, position, topic };
  return toShareEventRow({ ...place, session_id: to.id, session_epoch: to.epoch, given_epoch: to.epoch });
}
