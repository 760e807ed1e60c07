import { LazySet } from "../../lib/lazy-collections.ts";

/** Work that must be done before the end of a connection is written, and before another connection of this node gets the session. */
export class Lingering {
  readonly #pending = new LazySet<Promise<void>>();

  /** `until` must not reject. */
  add(until: Promise<void>): void {
    if (this.#pending.has(until)) return;
    this.#pending.add(until);
    void until.then(() => this.#pending.delete(until));
  }

  /** Resolves when nothing is pending, including what is added while it waits. */
  async ended(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}
