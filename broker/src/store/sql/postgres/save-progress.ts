import { type Kysely, sql } from "kysely";
import { groupBy } from "../../../lib/group-by.ts";
import type { DeadLetterTable } from "../subscriptions/dead-letter-table.ts";
import type { ProgressRow, Schema } from "../schema.ts";

/**
 * Maximum number of rows that one statement writes, of subscriptions and dead letters together, at about 0.1 ms each. A subscription's row and its letters stay
 * together even if they are more. After an outage, the rows of all of a node's subscriptions wait. One statement for all of them would take too long: the
 * server would end it each time, and no progress would ever be written.
 */
const rowsPerStatementMax = 1_000;

/**
 * Writes many rows in one statement, in a fifth of the time of one statement each. The statement is a transaction of its own that does not wait for the disk.
 * Otherwise begin, setting and commit would be three more round trips, and a busy node writes progress 20 times a second. It locks the rows in the order of
 * their ids before it changes any, so that two nodes that write the same rows cannot deadlock. It compares the values that rows have once they are locked, not
 * those at the start of the statement. Rows that others have locked follow in later statements, which wait for them: a rollback of one group must not delay the
 * rows of the others.
 */
export async function saveProgress(
  database: Kysely<Schema>,
  rows: readonly ProgressRow[],
  letters: readonly DeadLetterTable[],
): Promise<readonly string[]> {
  const left = await save(database, { rows, letters, isPatient: false });
  const refused = left.flatMap(({ id, is_there }) => (is_there ? [] : [id]));
  const locked = new Set(left.flatMap(({ id, is_there }) => (is_there ? [id] : [])));
  if (locked.size === 0) return refused;
  const rest = {
    rows: rows.filter(({ id }) => locked.has(id)),
    letters: letters.filter(({ subscription_id: id }) => locked.has(id)),
  };
  return [...refused, ...(await save(database, { ...rest, isPatient: true })).map(({ id }) => id)];
}

interface Saving {
  readonly rows: readonly ProgressRow[];
  readonly letters: readonly DeadLetterTable[];
  /** Whether to wait for rows that others have locked. */
  readonly isPatient: boolean;
}

async function save(database: Kysely<Schema>, { rows, letters, isPatient }: Saving) {
  const left: UnlockedRow[] = [];
  const ordered = rows.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  for (const page of pagesOf(ordered, letters)) {
    const query = progressQuery(toColumns(page.rows), { letters: page.letters, isPatient });
    left.push(...(await query.execute(database)).rows);
  }
  return left;
}

/** Each row with its letters: the cursor must not pass an event without them. */
function* pagesOf(
  rows: readonly ProgressRow[],
  letters: readonly DeadLetterTable[],
): Iterable<Pick<Saving, "rows" | "letters">> {
  const lettersOf = groupBy(letters, ({ subscription_id: id }) => id);
  let page: { readonly rows: ProgressRow[]; readonly letters: DeadLetterTable[] } = { rows: [], letters: [] };
  for (const row of rows) {
    const own = lettersOf.get(row.id) ?? [];
    const size = page.rows.length + page.letters.length;
    if (size > 0 && size + 1 + own.length > rowsPerStatementMax) {
      yield page;
      page = { rows: [], letters: [] };
    }
    page.rows.push(row);
    page.letters.push(...own);
  }
  if (page.rows.length > 0) yield page;
}

function toColumns(rows: readonly ProgressRow[]): ProgressColumns {
  return {
    ids: rows.map(({ id }) => id),
    epochs: rows.map(({ epoch }) => epoch),
    cursors: rows.map(({ cursor }) => cursor),
    counts: rows.map(({ notified_count }) => notified_count),
    times: rows.map(({ notified_at }) => notified_at),
    attempts: rows.map(({ failed_attempts }) => failed_attempts),
    waits: rows.map(({ failed_ms }) => failed_ms),
    begins: rows.map(({ failing_since }) => failing_since),
    retries: rows.map(({ retry_at }) => retry_at),
    checks: rows.map(({ progress_check }) => progress_check),
  };
}

/** One column for each field of the rows, which ascend by id. */
interface ProgressColumns {
  readonly ids: readonly string[];
  readonly epochs: readonly number[];
  readonly cursors: readonly number[];
  readonly counts: readonly number[];
  readonly times: readonly number[];
  readonly attempts: readonly number[];
  readonly waits: readonly number[];
  readonly begins: readonly number[];
  readonly retries: readonly number[];
  readonly checks: readonly number[];
}

/** A row that a statement did not lock, and whether the table had it with its epoch when the statement began. */
interface UnlockedRow {
  readonly id: string;
  readonly is_there: boolean;
}

/** Returns the rows that it did not lock. */
export function progressQuery(columns: ProgressColumns, { letters, isPatient }: Omit<Saving, "rows">) {
  const { ids, epochs, cursors, counts, times, attempts, waits, begins, retries, checks } = columns;
  return sql<UnlockedRow>`
    with given as materialized (
      select given.* from set_config('synchronous_commit', 'off', true) cross join -- Until its own transaction ends.
        unnest(${ids}::text[], ${epochs}::bigint[], ${cursors}::bigint[], ${counts}::bigint[], ${times}::bigint[],
        ${attempts}::bigint[], ${waits}::bigint[], ${begins}::bigint[], ${retries}::bigint[], ${checks}::bigint[])
        as given (id, epoch, cursor, notified_count, notified_at, failed_attempts, failed_ms, failing_since, retry_at,
        progress_check)
    ),
    held as materialized (
      select given.id, kept.cursor from given cross join lateral (
        select cursor from subscriptions as kept where kept.id = given.id and kept.epoch = given.epoch for no key update ${isPatient ? sql`` : sql`skip locked`}
      ) as kept
    ),
    ${letters.length === 0 ? sql`` : insertPassed(letters)}
    moved as (
      update subscriptions as kept
      set cursor = given.cursor, notified_count = given.notified_count, notified_at = given.notified_at,
        failed_attempts = given.failed_attempts, failed_ms = given.failed_ms, failing_since = given.failing_since,
        retry_at = given.retry_at, progress_check = given.progress_check
      from given
      where kept.id = any (array(select id from held)) -- All of them, before the first row is changed.
        and kept.id = given.id and kept.cursor <= given.cursor and (kept.cursor < given.cursor
          or kept.failed_ms < given.failed_ms or kept.failing_since < given.failing_since or kept.retry_at < given.retry_at)
    )
    select id, exists (select from subscriptions as kept where kept.id = given.id and kept.epoch = given.epoch) as is_there
    from given where not exists (select from held where held.id = given.id)`;
}

/** Inserts the letters after the stored cursor. */
function insertPassed(letters: readonly DeadLetterTable[]) {
  return sql`inserted as (
      insert into dead_letters (subscription_id, position, event_id, topic, attempts, reason, failed_at, checksum)
      select letter.* from unnest(${letters.map((row) => row.subscription_id)}::text[],
        ${letters.map((row) => row.position)}::bigint[], ${letters.map((row) => row.event_id)}::text[],
        ${letters.map((row) => row.topic)}::text[], ${letters.map((row) => row.attempts)}::bigint[],
        ${letters.map((row) => row.reason)}::text[], ${letters.map((row) => row.failed_at)}::bigint[],
        ${letters.map((row) => row.checksum)}::bigint[])
        as letter (subscription_id, position, event_id, topic, attempts, reason, failed_at, checksum)
      join held on held.id = letter.subscription_id and letter.position > held.cursor
      on conflict (subscription_id, position) do nothing
    ),`;
}
