/** Width of a bucket, in milliseconds. */
const bucketMs = 500;

/** Items with the time at which each becomes due. Finds the due ones without looking at the others. */
export class DueBuckets<Item> {
  readonly #buckets = new Map<number, Set<Item>>();

  /** `dueAt` in milliseconds. */
  add(item: Item, dueAt: number): void {
    const bucket = Math.floor(dueAt / bucketMs);
    const items = this.#buckets.get(bucket) ?? new Set();
    this.#buckets.set(bucket, items.add(item));
  }

  delete(item: Item, dueAt: number): void {
    const bucket = Math.floor(dueAt / bucketMs);
    const items = this.#buckets.get(bucket);
    items?.delete(item);
    if (items?.size === 0) this.#buckets.delete(bucket);
  }

  /** Removes and returns the items that are due by `now`, and some that are due less than {@link bucketMs} later. */
  takeDue(now: number): readonly Item[] {
    const due: Item[] = [];
    for (const [bucket, items] of this.#buckets) {
      if (bucket * bucketMs > now) continue;
      this.#buckets.delete(bucket);
      due.push(...items);
    }
    return due;
  }
}
