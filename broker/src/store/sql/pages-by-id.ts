/**
 * Maximum number of a group's batches, topics, subscriptions, sessions or shares that one statement of a rollback reads or changes, and of sessions that one
 * statement detaches. SQLite takes 7 µs for each row, on the main thread. PostgreSQL ends statements that take too long, and transactions that are idle for too
 * long. One statement may also change what 1,000 of them own, such as filters of sessions or dead letters of subscriptions: up to 1,000 rows for each owner,
 * but only rows beyond the end of the rollback.
 */
export const rowsAtOnceMax = 1_000;

/** Yields what `read` returns for the ids after a given one, page by page. `read` sorts by id and returns at most {@link rowsAtOnceMax} rows. */
export async function* pagesById<Row extends { readonly id: string }>(
  read: (after: string) => Promise<readonly Row[]>,
): AsyncIterable<readonly Row[]> {
  for (let after = ""; ; ) {
    const rows = await read(after);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    if (rows.length < rowsAtOnceMax) return;
    after = last.id;
  }
}
