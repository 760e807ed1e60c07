/** A map that drops its least recently used entries while they exceed a number or a total weight. */
export class Lru<Key, Value> {
  readonly #entries = new Map<Key, { readonly value: Value; readonly weight: number }>();
  readonly #weightMax: number;
  readonly #entriesMax: number;
  #weight = 0;

  constructor(limits: { readonly entriesMax?: number; readonly weightMax?: number }) {
    this.#entriesMax = limits.entriesMax ?? Number.POSITIVE_INFINITY;
    this.#weightMax = limits.weightMax ?? Number.POSITIVE_INFINITY;
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key: Key, value: Value, weight = 1): void {
    this.delete(key);
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    this.#shrink();
  }

  delete(key: Key): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }

  #shrink(): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#entriesMax && this.#weight <= this.#weightMax) return;
      this.delete(key);
    }
  }
}
