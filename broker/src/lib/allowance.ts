/** Size of a token bucket: its capacity, and the tokens that come back each second. */
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

  /** Takes a token if there is one. Returns whether there was. */
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
