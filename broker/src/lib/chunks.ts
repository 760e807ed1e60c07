/** Splits the items into chunks of `size`; the last may be shorter. */
export function* chunksOf<T>(items: readonly T[], size: number): Iterable<readonly T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

/** The results of `map` for all items, in order. Maps `size` items at once. */
export async function mapInChunks<T, Result>(
  items: readonly T[],
  size: number,
  map: (item: T) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const some of chunksOf(items, size)) results.push(...(await Promise.all(some.map(map))));
  return results;
}
