/**
 * Bounds an amount per second. Callers may take the amount of one second at once. A caller may also take a larger amount in one step: the excess is
 * owed, and delays later callers.
 */
export class RateMeter {
  readonly #perSecond: number;
  #left: number;
  #countedAt: number;

  /** `now` is in milliseconds, of a clock that never goes back. */
  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#left = perSecond;
    this.#countedAt = now;
  }

  /** Milliseconds until something may be taken; 0 if it may be taken now. */
  waitMs(now: number): number {
    this.#refill(now);
    return this.#left > 0 ? 0 : Math.floor((-this.#left / this.#perSecond) * 1000) + 1;
  }

  /** Takes an amount, which {@link waitMs} has allowed. */
  take(amount: number): void {
    this.#left -= amount;
  }

  /** Whether a full burst, the amount of one second, may be taken. */
  isFull(now: number): boolean {
    this.#refill(now);
    return this.#left >= this.#perSecond;
  }

  #refill(now: number): void {
    this.#left = Math.min(this.#perSecond, this.#left + ((now - this.#countedAt) / 1000) * this.#perSecond);
    this.#countedAt = now;
  }
}
