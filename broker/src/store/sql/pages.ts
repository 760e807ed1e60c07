/** Maximum number of rows that one statement inserts or names: a database accepts at least 32,766 values, and a row has fewer than 30. */
export const rowsInsertedMax = 512;

/** Splits rows into pages, one statement each. Page lengths are powers of two, so that few different statements fill a database's cache. */
export function* pagesOf<Row>(rows: readonly Row[], lengthMax = rowsInsertedMax): Iterable<readonly Row[]> {
  for (let start = 0; start < rows.length; ) {
    const length = Math.min(lengthMax, 2 ** Math.floor(Math.log2(rows.length - start)));
    yield rows.slice(start, start + length);
    start += length;
  }
}
