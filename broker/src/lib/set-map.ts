const noValues: ReadonlySet<never> = new Set<never>();

/** Sets of values by key. A key exists as long as it has a value. */
export class SetMap<Key, Value> {
  readonly #sets = new Map<Key, Set<Value>>();

  keys(): IterableIterator<Key> {
    return this.#sets.keys();
  }

  /** The values of a key; empty for an unknown one. */
  get(key: Key): ReadonlySet<Value> {
    return this.#sets.get(key) ?? noValues;
  }

  add(key: Key, value: Value): void {
    const set = this.#sets.get(key);
    if (set === undefined) this.#sets.set(key, new Set([value]));
    else set.add(value);
  }

  delete(key: Key, value: Value): void {
    const set = this.#sets.get(key);
    set?.delete(value);
    if (set?.size === 0) this.#sets.delete(key);
  }

  /** Removes a key, and returns its values. */
  take(key: Key): ReadonlySet<Value> {
    const set = this.get(key);
    this.#sets.delete(key);
    return set;
  }
}
