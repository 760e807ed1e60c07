/** A map that drops its oldest entry if a new one exceeds its limit. An entry that is set again becomes the newest. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #entriesMax: number;

  constructor(entriesMax: number) {
    super();
    this.#entriesMax = entriesMax;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    if (this.size > this.#entriesMax) this.#dropOldest();
    return this;
  }

  #dropOldest(): void {
    for (const oldest of this.keys()) {
      this.delete(oldest);
      return;
    }
  }
}
