export interface LastingTroubleOptions {
  readonly clock: { now(): number; monotonic(): number };
  /** How long something may fail before it counts, in milliseconds. */
  readonly toleranceMs: number;
}

/** Remembers how long something has failed, so that health can report it. */
export class LastingTrouble {
  readonly #options: LastingTroubleOptions;
  #trouble: { readonly since: number; readonly date: number; readonly reason: string } | undefined;

  constructor(options: LastingTroubleOptions) {
    this.#options = options;
  }

  failed(error: unknown): void {
    const { clock } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    this.#trouble = { ...(this.#trouble ?? { since: clock.monotonic(), date: clock.now() }), reason };
  }

  done(): void {
    this.#trouble = undefined;
  }

  /** The newest reason and the time of the first failure; undefined after a success, and while the failure is shorter than the tolerance. */
  find(): string | undefined {
    const { clock, toleranceMs } = this.#options;
    if (this.#trouble === undefined || clock.monotonic() - this.#trouble.since < toleranceMs) return undefined;
    return `${this.#trouble.reason} (since ${new Date(this.#trouble.date).toISOString()})`;
  }
}
