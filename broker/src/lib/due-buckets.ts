import { SetMap } from "./set-map.ts";

/** Width of a bucket, in milliseconds. */
const bucketMs = 500;

/** Items with the time at which each becomes due. Finds the due ones without looking at the others. */
export class DueBuckets<Item> {
  readonly #buckets = new SetMap<number, Item>();

  /** `dueAt` in milliseconds. */
  add(item: Item, dueAt: number): void {
    this.#buckets.add(Math.floor(dueAt / bucketMs), item);
  }

  delete(item: Item, dueAt: number): void {
    this.#buckets.delete(Math.floor(dueAt / bucketMs), item);
  }

  /** Removes and returns the items that are due by `now`, and some that are due less than {@link bucketMs} later. */
  takeDue(now: number): readonly Item[] {
    const due: Item[] = [];
    for (const bucket of this.#buckets.keys()) {
      if (bucket * bucketMs > now) continue;
      for (const item of this.#buckets.take(bucket)) due.push(item); // `push(...items)` with many items would overflow the stack.
    }
    return due;
  }
}
