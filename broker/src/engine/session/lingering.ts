import { LazySet } from "../../lib/lazy-collections.ts";

/** Work of a connection that this node finishes before it writes the connection's end, and before another of its connections gets the session. */
export class Lingering {
  readonly #pending = new LazySet<Promise<void>>();

  /** `until` must not reject. */
  add(until: Promise<void>): void {
    if (this.#pending.has(until)) return;
    this.#pending.add(until);
    void until.then(() => this.#pending.delete(until));
  }

  /** Resolves when nothing is pending, including work that is added while it waits. */
  async ended(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}
