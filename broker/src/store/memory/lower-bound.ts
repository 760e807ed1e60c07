/** Index of the first of ascending items whose key is at least `key`; the number of items if there is none. */
export function lowerBound<Item>(items: readonly Item[], key: number, keyOf: (item: Item) => number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const item = items[middle];
    if (item !== undefined && keyOf(item) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
