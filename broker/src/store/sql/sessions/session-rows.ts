import { type RawBuilder, sql } from "kysely";
import { fromStored, lastPosition } from "../../../domain/position.ts";
import type { SessionFilter } from "../../../domain/session-filter.ts";
import type {
  SessionId,
  SessionState,
  StoredConnectionEnd,
  StoredFilter,
  StoredSession,
} from "../../../ports/session-store.ts";
import { checksumOfBytes } from "../../../lib/bytes-checksum.ts";
import { checksumOf } from "../../checksum.ts";
import { progressPrime, residueOf } from "../row-checksums.ts";
import type { SessionFilterTable, SessionTable } from "../schema.ts";

// Casts restore the branded types: only this store writes these tables.

type Immutable = Pick<SessionTable, "session_id" | "group_id" | "interface_type" | "key" | "created_at">;
type EndColumns = Pick<SessionTable, "principal" | "expiry_ms" | "will" | "will_delay_ms">;

/** Checksum of the columns that no other check covers. Omits the owner: a damaged owner names no member, and a node that is no member loses its sessions. */
function checksumOfSession(row: Immutable & EndColumns): number {
  const will = row.will === null ? null : checksumOfBytes(row.will);
  const { session_id, group_id, interface_type, key, created_at, principal, expiry_ms, will_delay_ms } = row;
  return checksumOf([session_id, group_id, interface_type, key, created_at, principal, expiry_ms, will_delay_ms, will]);
}

type Checked = Pick<SessionTable, "cursor" | "taken" | "epoch" | "detached_at">;

/** Value of `state_check`: a sum, so that the database can compute it when one statement changes many rows. */
export function stateCheck({ cursor, taken, epoch, detached_at }: Checked): number {
  const detached = detached_at === null ? 0 : residueOf(detached_at) + 1;
  return residueOf(cursor) * 3 + residueOf(taken) * 5 + residueOf(epoch) * 7 + detached * 11;
}

const prime = sql.lit(progressPrime);

/** The part of `state_check` for the two positions. */
export function positionsCheckSql(cursor: RawBuilder<number>, taken: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`((${cursor}) % ${prime}) * 3 + ((${taken}) % ${prime}) * 5`;
}

type Outside = Pick<SessionTable, "outside" | "in_flight_check">;

/** Value of `outside_check`. It binds `outside` to the events in flight: a node of an earlier version, which does not know the column, writes only those. */
function outsideCheck({ outside, in_flight_check }: Outside): number {
  return residueOf(in_flight_check) + residueOf(outside);
}

/** The difference that another `outside` makes to `outside_check`. */
export function outsideCheckSql(outside: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`(${outside}) % ${prime} - outside % ${prime}`;
}

/** The difference that the next epoch makes to `state_check`. Statements add it, so that a damaged row stays damaged. */
export const nextEpochCheckSql = sql<number>`((epoch + 1) % ${prime} - epoch % ${prime}) * 7`;

/** The difference that detaching at `now` makes to `state_check`: 0 for a detached session. */
export function detachedCheckSql(now: RawBuilder<number>): RawBuilder<number> {
  return sql<number>`case when detached_at is null then (${now} % ${prime} + 1) * 11 else 0 end`;
}

/** The columns of a row that change with its next epoch. */
export function inNextEpoch(row: SessionTable): Pick<SessionTable, "epoch" | "state_check"> {
  const next = { ...row, epoch: row.epoch + 1 };
  return { epoch: next.epoch, state_check: toStored(row.state_check + stateCheck(next) - stateCheck(row)) };
}

/** Converts a check to a value that a column can hold: the check of a damaged row may be NaN, and becomes -1, which never matches. */
export function toStored(check: number): number {
  return Number.isNaN(check) ? -1 : check;
}

/** When the will or the end of a session is due, whichever comes first; null while the session is connected. */
export function dueAt(row: Pick<SessionTable, "detached_at" | "will" | "will_delay_ms" | "expiry_ms">): number | null {
  const { detached_at, will, will_delay_ms, expiry_ms } = row;
  if (detached_at === null) return null;
  return detached_at + (will === null ? expiry_ms : Math.min(will_delay_ms, expiry_ms));
}

/** The state of a session that has a connection. */
export function toStateColumns({ epoch, cursor, taken, outside, inFlight }: Omit<SessionState, "id">) {
  const columns = { cursor, taken, outside, in_flight: inFlight, in_flight_check: checksumOfBytes(inFlight) };
  const state_check = stateCheck({ cursor, taken, epoch, detached_at: null });
  return { ...columns, outside_check: outsideCheck(columns), state_check };
}

export function toEndColumns({ principal, will, willDelayMs, expiryMs }: StoredConnectionEnd): EndColumns {
  return { principal, expiry_ms: expiryMs, will: will ?? null, will_delay_ms: willDelayMs };
}

/** A new session without filters. */
export function toSessionRow(session: StoredSession): SessionTable {
  const immutable = {
    session_id: session.id,
    group_id: session.groupId,
    interface_type: session.protocol,
    key: session.key,
    created_at: session.createdAt,
  };
  const end = toEndColumns(session);
  const { epoch, cursor, taken, detachedAt: detached_at = null } = session;
  return {
    ...immutable,
    ...end,
    ...toStateColumns(session),
    state_check: stateCheck({ cursor, taken, epoch, detached_at }),
    owner: session.owner ?? null,
    epoch,
    detached_at,
    due_at: dueAt({ ...end, detached_at }),
    filters_check: 0,
    checksum: checksumOfSession({ ...immutable, ...end }),
  };
}

/** The columns for the time after the connection's end, with the row's new checksum. A damaged row gets a checksum that never matches. */
export function withEnd(row: SessionTable, end: EndColumns): EndColumns & Pick<SessionTable, "checksum"> {
  const isIntact = checksumOfSession(row) === row.checksum;
  return { ...end, checksum: isIntact ? checksumOfSession({ ...row, ...end }) : -1 };
}

function isIntact(row: SessionTable): boolean {
  return (
    checksumOfSession(row) === row.checksum &&
    stateCheck(row) === row.state_check &&
    checksumOfBytes(row.in_flight) === row.in_flight_check &&
    dueAt(row) === row.due_at
  );
}

/** Undefined for a damaged row. */
export function fromSessionRow(row: SessionTable): StoredSession | undefined {
  if (!isIntact(row)) return undefined;
  const { detached_at, will, will_delay_ms } = row;
  return {
    id: row.session_id as SessionId,
    groupId: row.group_id as StoredSession["groupId"],
    protocol: row.interface_type as StoredSession["protocol"],
    key: row.key,
    principal: row.principal,
    owner: (row.owner ?? undefined) as StoredSession["owner"],
    epoch: row.epoch,
    cursor: fromStored(row.cursor),
    taken: fromStored(row.taken),
    outside: outsideCheck(row) === row.outside_check ? fromStored(row.outside) : lastPosition,
    inFlight: row.in_flight,
    expiryMs: row.expiry_ms,
    detachedAt: detached_at ?? undefined,
    will: will ?? undefined,
    willDelayMs: will_delay_ms,
    willDueAt: detached_at === null || will === null ? undefined : detached_at + will_delay_ms,
    createdAt: row.created_at,
  };
}

const noLocalBit = 4;
const retainAsPublishedBit = 8;

export function toFilterRow(sessionId: string, filter: StoredFilter): SessionFilterTable {
  const { isNoLocal, isRetainAsPublished, qos } = filter;
  const options = qos | (isNoLocal ? noLocalBit : 0) | (isRetainAsPublished ? retainAsPublishedBit : 0);
  const row = {
    subscription_id: filter.id,
    session_id: sessionId,
    filter: filter.filter,
    options,
    identifier: filter.identifier ?? null,
    starts_after: filter.startsAfter,
  };
  return { ...row, checksum: checksumOfFilter(row) };
}

/** Checksum of a filter's row. The part for `starts_after` is a summand, so that the database can replace it when a rollback moves the start. */
function checksumOfFilter(row: Omit<SessionFilterTable, "checksum">): number {
  const { subscription_id, session_id, filter, options, identifier, starts_after } = row;
  return checksumOf([subscription_id, session_id, filter, options, identifier]) + startCheck(starts_after);
}

/** What filters add to the `filters_check` of their session, which shows whether a filter is missing. */
export function filtersCheck(rows: readonly Pick<SessionFilterTable, "checksum" | "starts_after">[]): number {
  return rows.reduce((sum, { checksum, starts_after }) => sum + checksum - startCheck(starts_after), 0);
}

/** What the start of a filter adds to its checksum. */
export function startCheck(startsAfter: number): number {
  return residueOf(startsAfter) * 3;
}

/** `startCheck` as an SQL expression. */
export const startCheckSql = sql<number>`(starts_after % ${sql.lit(progressPrime)}) * 3`;

/** Undefined for a damaged row. */
export function fromFilterRow(row: SessionFilterTable): StoredFilter | undefined {
  if (checksumOfFilter(row) !== row.checksum) return undefined;
  return {
    id: row.subscription_id as StoredFilter["id"],
    filter: row.filter as StoredFilter["filter"],
    qos: (row.options & 3) as SessionFilter["qos"],
    isNoLocal: (row.options & noLocalBit) !== 0,
    isRetainAsPublished: (row.options & retainAsPublishedBit) !== 0,
    identifier: row.identifier ?? undefined,
    startsAfter: fromStored(row.starts_after),
  };
}

/** Whether a session and all of its filters are intact, and no filter is missing. */
export function isIntactSession(row: SessionTable, filters: readonly SessionFilterTable[]): boolean {
  return (
    isIntact(row) &&
    filtersCheck(filters) === row.filters_check &&
    filters.every((filter) => checksumOfFilter(filter) === filter.checksum)
  );
}
