/** Spaces what it lets through so that a rate holds in the long run. */
export class Pacer {
  readonly #perMs: number;
  readonly #burstMs: number;
  /** When everything let through so far is paid for. */
  #paidAt = Number.NEGATIVE_INFINITY;

  /** Of what has not been used, so many milliseconds' worth may go at once. */
  constructor({ perMs, burstMs }: { readonly perMs: number; readonly burstMs: number }) {
    this.#perMs = perMs;
    this.#burstMs = burstMs;
  }

  /** How long the next one waits. */
  delayMs(now: number): number {
    return Math.max(0, this.#paidAt - this.#burstMs - now);
  }

  /** Lets one through, however large it is; those after it wait for its price. */
  take(now: number, amount: number): void {
    this.#paidAt = Math.max(now, this.#paidAt) + amount / this.#perMs;
  }
}
