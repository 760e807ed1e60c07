export interface Taken<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/** Returns the first `max` items of a list. It reads one item more, to learn whether there are others: so ask for pages of `max + 1`. */
export async function take<Item>(list: AsyncIterable<Item>, max: number): Promise<Taken<Item>> {
  const items: Item[] = [];
  for await (const item of list) {
    if (items.length === max) return { items, hasMore: true };
    items.push(item);
  }
  return { items, hasMore: false };
}
