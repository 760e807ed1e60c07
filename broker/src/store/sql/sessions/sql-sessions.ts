import { sql, type Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import type { NodeId } from "../../../domain/node.ts";
import { positionZero } from "../../../domain/position.ts";
import type { SubscriptionId } from "../../../domain/subscription.ts";
import type {
  FilterChange,
  StoredConnectionEnd,
  SessionClaim,
  SessionClaimed,
  SessionId,
  SessionKey,
  SessionState,
  SessionStore,
  SessionWithFilters,
  StoredSession,
} from "../../../ports/session-store.ts";
import { mayResume, toNewSession } from "../../../ports/claimed-session.ts";
import { pagesOf } from "../pages.ts";
import { rowsAtOnceMax } from "../pages-by-id.ts";
import { checkRow } from "../row-checksums.ts";
import type { Schema, SessionTable, SqlDatabase } from "../schema.ts";
import { insertSession, keepDueWill } from "./due-will.ts";
import { readSession, readUnlocked } from "./read-session.ts";
import {
  advanceSessionTime,
  countDetached,
  detachWhere,
  findDetached,
  findSessionTime,
  isOver,
  sessionTime,
} from "./session-detaching.ts";
import {
  dueAt,
  filtersCheck,
  fromSessionRow,
  inNextEpoch,
  nextEpochCheckSql,
  stateCheck,
  toFilterRow,
  toEndColumns,
  toStateColumns,
  toStored,
  withEnd,
} from "./session-rows.ts";
import { changeMembers, type MemberChange } from "./share-members.ts";
import { keepShared, settle, sharedFiltersOf } from "./sql-shares.ts";
import { findExceededSessionQuota } from "../access/stored-quotas.ts";
import { rollbackLock } from "../subscriptions/sql-subscriptions.ts";

/** The store's part for sessions. */
export class SqlSessions implements SessionStore {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  async claimSession(claim: SessionClaim): Promise<SessionClaimed> {
    const { groupId, protocol, key } = claim;
    return this.#change(async (transaction) => {
      await this.#database.lock(transaction, rollbackLock(groupId), "shared");
      await this.#database.lock(transaction, `session ${JSON.stringify([groupId, protocol, key])}`);
      const query = transaction
        .selectFrom("sessions")
        .selectAll()
        .where("group_id", "=", groupId)
        .where("interface_type", "=", protocol)
        .where("key", "=", key);
      const row = await this.#database.locking(query).executeTakeFirst();
      const found = row && (await readSession(transaction, row));
      if (row !== undefined && found === undefined) {
        await this.#remove(transaction, { id: row.session_id as SessionId, groupId });
        return { status: "damaged" };
      }
      const hasEnded = found !== undefined && (await isOver(transaction, found.session));
      if (row !== undefined && found !== undefined && mayResume(claim, found) && !hasEnded)
        return this.#resume(transaction, { row, found, claim });
      return this.#begin(transaction, claim, found?.session);
    });
  }

  async findSession(id: SessionId): Promise<SessionWithFilters | undefined> {
    const { relaxed } = this.#database;
    const row = await relaxed.selectFrom("sessions").selectAll().where("session_id", "=", id).executeTakeFirst();
    return row && readUnlocked(this.#database, row);
  }

  async saveSessions(
    rows: readonly SessionState[],
    { isDurable }: { readonly isDurable: boolean },
  ): Promise<readonly SessionId[]> {
    const ordered = rows.toSorted((left, right) => (left.id < right.id ? -1 : 1));
    const database = isDurable ? this.#database.durable : this.#database.relaxed;
    return database.transaction().execute(async (transaction) => {
      const refused: SessionId[] = [];
      for (const { id, settled = [], ...state } of ordered) {
        const update = transaction.updateTable("sessions").set(toStateColumns(state));
        const { numUpdatedRows } = await update
          .where("session_id", "=", id)
          .where("epoch", "=", state.epoch)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) refused.push(id);
        else await settle(transaction, id, settled);
      }
      return refused;
    });
  }

  async saveSessionFilters(key: SessionKey, change: FilterChange): Promise<"saved" | "refused" | "rolled-back"> {
    const { put, removed, generation, replacesAll = false } = change;
    return this.#change(async (transaction) => {
      const row = await this.#lockRow(transaction, key);
      if (row === undefined) return "refused";
      const isPlaced = put.some(({ startsAfter }) => startsAfter > positionZero);
      if (isPlaced && (await this.#generationOf(transaction, row.group_id)) !== generation) return "rolled-back";
      const gone = [...removed, ...put.map(({ filter }) => filter)];
      const all = transaction.deleteFrom("session_subscriptions").where("session_id", "=", key.id);
      const deleting = replacesAll ? all : all.where("filter", "in", this.#database.column(gone));
      const former = await deleting.returning(["filter", "checksum", "starts_after"]).execute();
      const rows = put.map((filter) => toFilterRow(key.id, filter));
      for (const page of pagesOf(rows)) await transaction.insertInto("session_subscriptions").values(page).execute();
      const filters_check = toStored(row.filters_check + filtersCheck(rows) - filtersCheck(former));
      await transaction.updateTable("sessions").set({ filters_check }).where("session_id", "=", key.id).execute();
      const left = replacesAll ? former.map(({ filter }) => filter) : removed;
      await this.#changeMembers(transaction, row.group_id, { sessionId: key.id, put, removed: left });
      return "saved";
    });
  }

  async detachSession(key: SessionKey, end: Omit<StoredConnectionEnd, "principal">): Promise<boolean> {
    return this.#change(async (transaction) => {
      const row = await this.#lockRow(transaction, key);
      if (row === undefined) return false;
      const columns = withEnd(row, toEndColumns({ ...end, principal: row.principal }));
      await transaction.updateTable("sessions").set(columns).where("session_id", "=", key.id).execute();
      await detachWhere(transaction, row.group_id, sql`session_id = ${key.id}`);
      return true;
    });
  }

  async takeDueSession(key: SessionKey, owner: NodeId | undefined): Promise<StoredSession | undefined> {
    return this.#change(async (transaction) => {
      const row = await this.#lockRow(transaction, key);
      if (row === undefined || row.detached_at === null) return undefined;
      const change = { owner: owner ?? null, ...inNextEpoch(row) };
      await transaction.updateTable("sessions").set(change).where("session_id", "=", key.id).execute();
      return fromSessionRow({ ...row, ...change });
    });
  }

  async settleWill(key: SessionKey): Promise<boolean> {
    return this.#change(async (transaction) => {
      const row = await this.#lockRow(transaction, key);
      if (row === undefined) return false;
      const { principal, expiry_ms, will_delay_ms } = row;
      const columns = withEnd(row, { principal, expiry_ms, will_delay_ms, will: null });
      const change = { ...columns, owner: null, due_at: dueAt({ ...row, will: null }) };
      await transaction.updateTable("sessions").set(change).where("session_id", "=", key.id).execute();
      return true;
    });
  }

  async removeSession(key: SessionKey): Promise<boolean> {
    return this.#change(async (transaction) => {
      const row = await this.#lockRow(transaction, key);
      if (row === undefined) return false;
      await this.#remove(transaction, { id: key.id, groupId: row.group_id });
      return true;
    });
  }

  /**
   * Detaches page by page, since a node may have had tens of thousands of sessions. Locks each page in the order of identifiers, as a rollback does. Then
   * checks again which of its sessions are lost: while this waited for the locks, a node that has just joined may have claimed one.
   */
  async detachLost(groupId: GroupId): Promise<void> {
    const isLost = sql<boolean>`((owner is null and detached_at is null)
      or (owner is not null and not exists (select 1 from nodes where node_id = owner)))`;
    for (let count = rowsAtOnceMax; count === rowsAtOnceMax; )
      count = await this.#change(async (transaction) => {
        const all = transaction.selectFrom("sessions").select("session_id");
        const lost = all.where("group_id", "=", groupId).where(isLost).limit(rowsAtOnceMax); // Not sorted: most sweeps find none.
        const rows = await this.#database.locking(all.where("session_id", "in", lost).orderBy("session_id")).execute();
        const ids = this.#database.column(rows.map(({ session_id }) => session_id));
        if (rows.length > 0) await detachWhere(transaction, groupId, sql`session_id in ${ids} and ${isLost}`);
        return rows.length;
      });
  }

  async findSessionTime(groupId: GroupId): Promise<number> {
    return findSessionTime(this.#database.relaxed, groupId);
  }

  async advanceSessionTime(groupId: GroupId, byMs: number): Promise<number> {
    return advanceSessionTime(this.#database.relaxed, groupId, byMs);
  }

  async listDueSessions(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]> {
    const rows = await this.#database.relaxed
      .selectFrom("sessions")
      .select(["session_id", "epoch"])
      .where("group_id", "=", groupId)
      .where("due_at", "<=", sessionTime(sql`${groupId}`))
      .where("owner", "is", null)
      .orderBy("due_at")
      .limit(atMost)
      .execute();
    return rows.map(({ session_id, epoch }) => ({ id: session_id as SessionId, epoch })); // Unchanged since it was stored.
  }

  async listSessions(page: { readonly after: SessionId | undefined; readonly limit: number }) {
    const { relaxed } = this.#database;
    const found: SessionWithFilters[] = [];
    for (let after: string = page.after ?? ""; found.length < page.limit; ) {
      const rows = await relaxed
        .selectFrom("sessions")
        .selectAll()
        .where("session_id", ">", after)
        .orderBy("session_id")
        .limit(page.limit - found.length)
        .execute();
      for (const row of rows) {
        const session = await readUnlocked(this.#database, row);
        if (session !== undefined) found.push(session);
      }
      const last = rows.at(-1);
      if (last === undefined) break;
      after = last.session_id;
    }
    return found;
  }

  async findFilterOwner(id: SubscriptionId): Promise<SessionWithFilters | undefined> {
    const sessionId = await this.#sessionOf(this.#database.relaxed, id);
    return sessionId === undefined ? undefined : this.findSession(sessionId);
  }

  async removeSessionFilter(id: SubscriptionId): Promise<boolean> {
    return this.#change(async (transaction) => {
      const sessionId = await this.#sessionOf(transaction, id);
      if (sessionId === undefined) return false;
      await this.#lockRow(transaction, { id: sessionId });
      // Read under the lock: meanwhile another call may have changed or removed the filter.
      const query = transaction.selectFrom("session_subscriptions").selectAll();
      const found = await query.where("subscription_id", "=", id).executeTakeFirst();
      if (found === undefined) return false;
      const row = await transaction
        .updateTable("sessions")
        .set(({ eb }) => ({
          epoch: eb("epoch", "+", 1),
          state_check: eb("state_check", "+", nextEpochCheckSql),
          filters_check: eb("filters_check", "-", toStored(filtersCheck([found]))),
        }))
        .where("session_id", "=", found.session_id)
        .returning("group_id")
        .executeTakeFirst();
      await transaction.deleteFrom("session_subscriptions").where("subscription_id", "=", id).execute();
      const owner = found.session_id as SessionId; // Unchanged since it was stored.
      const left = { sessionId: owner, put: [], removed: [found.filter] };
      if (row !== undefined) await this.#changeMembers(transaction, row.group_id, left);
      await keepShared(transaction, [found.session_id]);
      await this.#database.notify(transaction, [{ kind: "session", id: owner }]);
      return true;
    });
  }

  async listDetached(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]> {
    const rows = await findDetached(this.#database.relaxed, groupId, atMost).execute();
    return rows.map(({ session_id, epoch }) => ({ id: session_id as SessionId, epoch })); // Unchanged since it was stored.
  }

  async countDetached(groupId: GroupId): Promise<number> {
    return Number((await countDetached(this.#database.relaxed, groupId).executeTakeFirst())?.count ?? 0);
  }

  async #resume(
    transaction: Transaction<Schema>,
    {
      row,
      found,
      claim,
    }: { readonly row: SessionTable; readonly found: SessionWithFilters; readonly claim: SessionClaim },
  ): Promise<SessionClaimed> {
    const former = found.session;
    const dueWill = await keepDueWill(transaction, { claim, former, isResumed: true });
    const change = {
      ...withEnd(row, toEndColumns(claim)),
      owner: claim.owner ?? null,
      epoch: row.epoch + 1,
      detached_at: null,
      due_at: null,
      state_check: stateCheck({ ...row, epoch: row.epoch + 1, detached_at: null }),
    };
    await transaction.updateTable("sessions").set(change).where("session_id", "=", former.id).execute();
    await this.#database.notify(transaction, [{ kind: "session", id: former.id }]);
    const session = fromSessionRow({ ...row, ...change }) ?? former;
    return { status: "resumed", former, current: { session, filters: found.filters }, dueWill };
  }

  async #begin(
    transaction: Transaction<Schema>,
    claim: SessionClaim,
    former: StoredSession | undefined,
  ): Promise<SessionClaimed> {
    const { position, generation, groupId, isStored, mayBegin } = claim;
    if (isStored && former === undefined && !mayBegin) return { status: "full" };
    const exceeded =
      isStored && former === undefined
        ? await findExceededSessionQuota(this.#database, transaction, claim.quotas ?? [])
        : undefined;
    if (exceeded !== undefined) return exceeded;
    const isPlaced = isStored && position > positionZero;
    if (isPlaced && (await this.#generationOf(transaction, groupId)) !== generation) return { status: "rolled-back" };
    const dueWill = former && (await keepDueWill(transaction, { claim, former, isResumed: false }));
    if (former !== undefined) {
      await this.#remove(transaction, former);
      await this.#database.notify(transaction, [{ kind: "session", id: former.id }]);
    }
    const current = isStored ? toNewSession(claim) : undefined;
    if (current !== undefined && !(await insertSession(transaction, current))) return { status: "taken" };
    return { status: "begun", former, current, dueWill };
  }

  async #generationOf(transaction: Transaction<Schema>, groupId: string): Promise<number> {
    const row = await transaction.selectFrom("groups").selectAll().where("group_id", "=", groupId).executeTakeFirst();
    return row === undefined ? 0 : checkRow(this.#database, "groups", row).generation;
  }

  /**
   * Locks a session's row, and its group against rollbacks, until the transaction ends. Undefined if the session is gone, or has another epoch than
   * the given one.
   */
  async #lockRow(
    transaction: Transaction<Schema>,
    { id, epoch }: Pick<SessionKey, "id"> & Partial<SessionKey>,
  ): Promise<SessionTable | undefined> {
    const groups = transaction.selectFrom("sessions").select("group_id").where("session_id", "=", id);
    const groupId = (await groups.executeTakeFirst())?.group_id;
    if (groupId === undefined) return undefined;
    await this.#database.lock(transaction, rollbackLock(groupId), "shared");
    const rows = transaction.selectFrom("sessions").selectAll().where("session_id", "=", id);
    const own = epoch === undefined ? rows : rows.where("epoch", "=", epoch);
    return this.#database.locking(own).executeTakeFirst();
  }

  async #sessionOf(database: Pick<Transaction<Schema>, "selectFrom">, id: string): Promise<SessionId | undefined> {
    const rows = database.selectFrom("session_subscriptions").select("session_id").where("subscription_id", "=", id);
    return (await rows.executeTakeFirst())?.session_id as SessionId | undefined; // Unchanged since it was stored.
  }

  async #remove(
    transaction: Transaction<Schema>,
    { id, groupId }: { readonly id: SessionId; readonly groupId: string },
  ): Promise<void> {
    const shared = await sharedFiltersOf(transaction, id);
    await transaction.deleteFrom("session_subscriptions").where("session_id", "=", id).execute();
    await transaction.deleteFrom("sessions").where("session_id", "=", id).execute();
    await this.#changeMembers(transaction, groupId, { sessionId: id, put: [], removed: shared });
  }

  #changeMembers(transaction: Transaction<Schema>, groupId: string, change: MemberChange): Promise<void> {
    return changeMembers({ database: this.#database, transaction, groupId }, change);
  }

  #change<Result>(task: (transaction: Transaction<Schema>) => Promise<Result>): Promise<Result> {
    return this.#database.durable.transaction().execute(task);
  }
}
