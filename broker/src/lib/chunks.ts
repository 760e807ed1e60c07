/** Splits the items into chunks of `size`; the last may be shorter. */
export function* chunksOf<T>(items: readonly T[], size: number): Iterable<readonly T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}
