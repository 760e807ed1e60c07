/** Width of a bucket, in milliseconds. */
const bucketMs = 500;

/** Things that become due at some time, found without looking at those that are not. */
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

  /** Removes and returns what is due by `now`, or within {@link bucketMs} after. */
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
