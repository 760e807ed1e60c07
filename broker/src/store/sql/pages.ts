/** Rows that one statement inserts, at most: a database takes at least 32,766 values, and a row has fewer than twenty. */
export const rowsInsertedMax = 512;

/** Rows in pages of one statement each. Their lengths are powers of two, so that a database which keeps statements keeps few. */
export function* pagesOf<Row>(rows: readonly Row[]): Iterable<readonly Row[]> {
  for (let start = 0; start < rows.length; ) {
    const length = Math.min(rowsInsertedMax, 2 ** Math.floor(Math.log2(rows.length - start)));
    yield rows.slice(start, start + length);
    start += length;
  }
}
