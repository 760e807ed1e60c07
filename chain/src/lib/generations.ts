/**
 * A map that forgets what was unused for long: a full generation becomes the old one, whose entries stay as long as they are used until the
 * next is full. Cheaper than keeping entries in the order of use.
 */
export class Generations<Value> {
  readonly #weightMax: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #weight = 0;

  /** `weightMax` holds for both generations together. */
  constructor(weightMax: number) {
    this.#weightMax = weightMax / 2;
  }

  get(key: string, weigh: (value: Value) => number = () => 1): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old, weigh(old));
    return old;
  }

  set(key: string, value: Value, weight = 1): void {
    if (this.#weight + weight > this.#weightMax) this.#age();
    this.#young.set(key, value);
    this.#weight += weight;
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#weight = 0;
  }
}
