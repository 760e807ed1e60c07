import type { Clock } from "../../ports/clock.ts";
import type { Hint } from "../../ports/coordinator.ts";

type Listener = (hint: Hint) => void;

/** Sends hints to the listeners of this process, always in a later turn of the event loop than the change. */
export class MemoryHints {
  readonly #clock: Clock;
  readonly #listeners = new Set<Listener>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  send(hint: Hint): void {
    this.#clock.soon(() => {
      for (const listener of this.#listeners) listener(hint);
    });
  }

  /** A listener that is added twice is called twice. */
  add(onHint: Listener): () => void {
    const listener: Listener = (hint) => onHint(hint);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
