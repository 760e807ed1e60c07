/** A rate limiter: delays items so that the rate holds in the long run. */
export class Pacer {
  readonly #perMs: number;
  readonly #burstMs: number;
  /** When the rate alone allows the next item. A burst may allow it earlier. */
  #paidAt = Number.NEGATIVE_INFINITY;

  /** `perMs`: amount per millisecond. `burstMs`: items may use up to this many milliseconds of unused rate at once. */
  constructor({ perMs, burstMs }: { readonly perMs: number; readonly burstMs: number }) {
    this.#perMs = perMs;
    this.#burstMs = burstMs;
  }

  /** How long the next item must wait, in milliseconds. */
  delayMs(now: number): number {
    return Math.max(0, this.#paidAt - this.#burstMs - now);
  }

  /** Passes one item, however large it is. Later items wait for its cost. */
  take(now: number, amount: number): void {
    this.#paidAt = Math.max(now, this.#paidAt) + amount / this.#perMs;
  }
}
