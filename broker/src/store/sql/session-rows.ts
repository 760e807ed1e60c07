import { sql } from "kysely";
import { fromStored } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import type { SessionId, SessionState, StoredFilter, StoredSession } from "../../ports/session-store.ts";
import { checksumOf, checksumOfBytes } from "../checksum.ts";
import { progressPrime } from "./row-checksums.ts";
import type { SessionFilterTable, SessionTable } from "./schema.ts";

// Brands are given back to what was taken from them: only this store writes these tables.

type Immutable = Pick<SessionTable, "session_id" | "group_id" | "interface_type" | "key" | "created_at">;
type Legacy = Pick<SessionTable, "principal" | "expiry_ms" | "will" | "will_delay_ms">;

/** Over all that a claim or the end of a connection writes. What databases compute, owner, epoch and times, is not covered. */
function checksumOfSession(row: Immutable & Legacy): number {
  const will = row.will === null ? null : checksumOfBytes(row.will);
  const { session_id, group_id, interface_type, key, created_at, principal, expiry_ms, will_delay_ms } = row;
  return checksumOf([session_id, group_id, interface_type, key, created_at, principal, expiry_ms, will_delay_ms, will]);
}

/** A sum, so that a database can work it out where it moves many sessions back at once. */
export function stateCheck({ cursor, taken }: Pick<SessionTable, "cursor" | "taken">): number {
  return (cursor % progressPrime) * 3 + (taken % progressPrime) * 5;
}

export function toStateColumns({ cursor, taken, inFlight }: Omit<SessionState, "id" | "epoch">) {
  const columns = { cursor, taken, in_flight: inFlight, in_flight_check: checksumOfBytes(inFlight) };
  return { ...columns, state_check: stateCheck(columns) };
}

export function toLegacyColumns({ principal, will, willDelayMs, expiryMs }: StoredSession | LegacyOf): Legacy {
  return { principal, expiry_ms: expiryMs, will: will ?? null, will_delay_ms: willDelayMs };
}

type LegacyOf = Pick<StoredSession, "principal" | "will" | "willDelayMs" | "expiryMs">;

export function toSessionRow(session: StoredSession): SessionTable {
  const immutable = {
    session_id: session.id,
    group_id: session.groupId,
    interface_type: session.protocol,
    key: session.key,
    created_at: session.createdAt,
  };
  const legacy = toLegacyColumns(session);
  return {
    ...immutable,
    ...legacy,
    ...toStateColumns(session),
    owner: session.owner ?? null,
    epoch: session.epoch,
    detached_at: session.detachedAt ?? null,
    will_due_at: session.willDueAt ?? null,
    due_at: null,
    checksum: checksumOfSession({ ...immutable, ...legacy }),
  };
}

/** Other legacy columns of a row, with the checksum that goes with them. */
export function withLegacy(row: SessionTable, legacy: Legacy): Legacy & Pick<SessionTable, "checksum"> {
  return { ...legacy, checksum: checksumOfSession({ ...row, ...legacy }) };
}

/** Undefined for a row that is not as it was written. */
export function fromSessionRow(row: SessionTable): StoredSession | undefined {
  const isIntact =
    checksumOfSession(row) === row.checksum &&
    stateCheck(row) === row.state_check &&
    checksumOfBytes(row.in_flight) === row.in_flight_check;
  if (!isIntact) return undefined;
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
    inFlight: row.in_flight,
    expiryMs: row.expiry_ms,
    detachedAt: row.detached_at ?? undefined,
    will: row.will ?? undefined,
    willDelayMs: row.will_delay_ms,
    willDueAt: row.will_due_at ?? undefined,
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

/** The part for `starts_after` is added: a rollback moves it, and the database computes the sum anew. */
function checksumOfFilter(row: Omit<SessionFilterTable, "checksum">): number {
  const { subscription_id, session_id, filter, options, identifier, starts_after } = row;
  return checksumOf([subscription_id, session_id, filter, options, identifier]) + startCheck(starts_after);
}

/** What the start of a filter adds to its checksum. */
export function startCheck(startsAfter: number): number {
  return (startsAfter % progressPrime) * 3;
}

/** The same as an SQL expression. */
export const startCheckSql = sql<number>`(starts_after % ${sql.lit(progressPrime)}) * 3`;

/** Undefined for a row that is not as it was written. */
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
