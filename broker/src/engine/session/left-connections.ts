import type { KeyedMutex } from "../../lib/keyed-mutex.ts";

/** Connections that have left and whose ends are not written yet, by the names of their sessions. */
export class LeftConnections {
  readonly #turns: KeyedMutex<string>;
  readonly #pending = new Map<string, () => Promise<void>>();
  readonly #turnsAsked = new Set<Promise<void>>();

  /** `turns`: in which a name gets its session. */
  constructor(turns: KeyedMutex<string>) {
    this.#turns = turns;
  }

  /** `write` must not reject. It runs in the next turn of the name, or before by {@link write}. */
  add(name: string, write: () => Promise<void>): void {
    this.#pending.set(name, write);
    const turn = this.#turns.run(name, () => this.write(name));
    this.#turnsAsked.add(turn);
    void turn.finally(() => this.#turnsAsked.delete(turn));
  }

  has(name: string): boolean {
    return this.#pending.has(name);
  }

  /** To be called in a turn of the name. */
  async write(name: string): Promise<void> {
    const write = this.#pending.get(name);
    this.#pending.delete(name);
    await write?.();
  }

  /** Answers when every end is written that is not yet. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#turnsAsked);
  }
}
