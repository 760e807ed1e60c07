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

  /** Takes `count` tokens if there are as many; a full bucket allows any number. Returns whether it took them. */
  take(count = 1): boolean {
    const { atOnce, perSecond } = this.#size;
    const now = this.#clock.monotonic();
    this.#left = Math.min(atOnce, this.#left + ((now - this.#countedAt) / 1000) * perSecond);
    this.#countedAt = now;
    const taken = Math.min(count, atOnce);
    if (this.#left < taken) return false;
    this.#left -= taken;
    return true;
  }
}
