const noEntries: ReadonlyMap<never, never> = new Map<never, never>();

/** A map for each of tens of thousands of owners. Most of them add no entry: an empty Map takes 216 bytes, this takes 32. */
export class LazyMap<Key, Value> {
  #map: Map<Key, Value> | undefined;

  get size(): number {
    return this.#map?.size ?? 0;
  }

  get(key: Key): Value | undefined {
    return this.#map?.get(key);
  }

  has(key: Key): boolean {
    return this.#map?.has(key) ?? false;
  }

  set(key: Key, value: Value): void {
    this.#map ??= new Map();
    this.#map.set(key, value);
  }

  delete(key: Key): boolean {
    return this.#map?.delete(key) ?? false;
  }

  clear(): void {
    this.#map?.clear(); // an iteration in progress sees no more entries
    this.#map = undefined;
  }

  keys(): IterableIterator<Key> {
    return (this.#map ?? noEntries).keys();
  }

  values(): IterableIterator<Value> {
    return (this.#map ?? noEntries).values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return (this.#map ?? noEntries).entries();
  }
}

/** Like {@link LazyMap}, as a set. */
export class LazySet<Value> {
  readonly #values = new LazyMap<Value, true>();

  constructor(values: Iterable<Value> = []) {
    for (const value of values) this.add(value);
  }

  get size(): number {
    return this.#values.size;
  }

  has(value: Value): boolean {
    return this.#values.has(value);
  }

  add(value: Value): void {
    this.#values.set(value, true);
  }

  delete(value: Value): boolean {
    return this.#values.delete(value);
  }

  clear(): void {
    this.#values.clear();
  }

  [Symbol.iterator](): IterableIterator<Value> {
    return this.#values.keys();
  }
}
