export interface Taken<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/** The first items of a list that is read page by page; later pages are not asked for. */
export async function take<Item>(list: AsyncIterable<Item>, max: number): Promise<Taken<Item>> {
  const items: Item[] = [];
  for await (const item of list) {
    if (items.length === max) return { items, hasMore: true };
    items.push(item);
  }
  return { items, hasMore: false };
}
