/**
 * A cache in two generations. When the young generation is full, it replaces the old one. An entry that is used moves back to the young
 * generation; the others are dropped with the old one. This is cheaper than keeping entries in the order of use.
 */
export class Generations<Value> {
  readonly #weightMax: number;
  readonly #weigh: (value: Value) => number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #weight = 0;

  /** `weightMax` holds for both generations together; the newest entry may exceed it. */
  constructor(weightMax: number, weigh: (value: Value) => number = () => 1) {
    this.#weightMax = weightMax / 2;
    this.#weigh = weigh;
  }

  get(key: string): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  /** Adds an entry. If it replaces the key's entry in the young generation, that entry no longer counts. */
  set(key: string, value: Value): void {
    const before = this.#young.get(key);
    this.#weight += this.#weigh(value) - (before === undefined ? 0 : this.#weigh(before));
    this.#young.set(key, value);
    if (this.#weight > this.#weightMax) this.#age();
  }

  delete(key: string): void {
    const before = this.#young.get(key);
    if (before !== undefined) this.#weight -= this.#weigh(before);
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#weight = 0;
  }
}
