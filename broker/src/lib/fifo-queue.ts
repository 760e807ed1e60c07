/** Minimum number of empty places at the front of the array before the queue copies the remaining items to a new array. */
const takenMin = 1024;

/** A queue, first in, first out, that stays fast with any number of items. In V8, `shift` of an array with more than about 16,000 items moves all of them. */
export class FifoQueue<Item> {
  #items: (Item | undefined)[] = [];
  #taken = 0;

  get size(): number {
    return this.#items.length - this.#taken;
  }

  add(item: Item): void {
    this.#items.push(item);
  }

  /** Removes and returns the oldest item; undefined if the queue is empty. */
  take(): Item | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#taken];
    this.#items[this.#taken] = undefined; // So that the garbage collector can free the item before the next copy.
    this.#taken += 1;
    if (this.#taken >= takenMin && this.#taken * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#taken);
      this.#taken = 0;
    }
    return item;
  }
}
