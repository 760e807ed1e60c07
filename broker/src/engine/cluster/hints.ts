import type { Hint } from "../../ports/coordinator.ts";

/** Passes each hint to all listeners. */
export class Hints {
  readonly #listeners = new Set<(hint: Hint) => void>();

  add(listener: (hint: Hint) => void): () => void {
    const own = (hint: Hint): void => listener(hint);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  notify(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }
}
