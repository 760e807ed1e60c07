/** Lets concurrent calls for one key share one call. */
export class SharedCalls<Key, Result> {
  readonly #underWay = new Map<Key, Promise<Result>>();

  /** Number of calls under way. */
  get size(): number {
    return this.#underWay.size;
  }

  /** Whether a call for the key is under way. */
  has(key: Key): boolean {
    return this.#underWay.has(key);
  }

  /** Returns the call for the key that is under way; begins `call` if there is none. */
  run(key: Key, call: () => Promise<Result>): Promise<Result> {
    const earlier = this.#underWay.get(key);
    if (earlier !== undefined) return earlier;
    const begun = call().finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, begun);
    return begun;
  }
}
