import type { Clock } from "../../../../ports/clock.ts";

/** Runs `factor` times as fast as real time, for tests that have long pauses and real connections. */
export class FastClock implements Clock {
  readonly #factor: number;

  constructor(factor: number) {
    this.#factor = factor;
  }

  now(): number {
    return performance.now() * this.#factor;
  }

  monotonic(): number {
    return this.now();
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = setTimeout(action, delayMs / this.#factor);
    return () => clearTimeout(timer);
  }

  soon(action: () => void): void {
    setImmediate(action);
  }
}
