/** What may be done at once, and how much of that comes back each second. */
export interface AllowanceSize {
  readonly atOnce: number;
  readonly perSecond: number;
}

/** A token bucket. */
export class Allowance {
  readonly #size: AllowanceSize;
  readonly #clock: { monotonic(): number };
  #left: number;
  #countedAt: number;

  constructor(size: AllowanceSize, clock: { monotonic(): number }) {
    this.#size = size;
    this.#clock = clock;
    this.#left = size.atOnce;
    this.#countedAt = clock.monotonic();
  }

  /** Whether one more is allowed now; then it is taken. */
  take(): boolean {
    const { atOnce, perSecond } = this.#size;
    const now = this.#clock.monotonic();
    this.#left = Math.min(atOnce, this.#left + ((now - this.#countedAt) / 1000) * perSecond);
    this.#countedAt = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
