import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "../clock.ts";

interface Timer {
  readonly due: number;
  readonly order: number;
  readonly action: () => void;
}

/** Number of turns of the event loop that suffices for all work that does not wait for a timer. */
const settlingTurns = 12;

/** Time that moves only when the test moves it. */
export class VirtualClock implements Clock {
  #now = 1_700_000_000_000;
  /** How far the wall clock is ahead of the monotonic clock. */
  #wallClockAheadMs = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  /** Number of timers that have not fired. */
  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now + this.#wallClockAheadMs;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Moves the wall clock by `ms`. The monotonic clock and the timers stay. */
  step(ms: number): void {
    this.#wallClockAheadMs += ms;
  }

  after(delayMs: number, action: () => void): () => void {
    this.#order += 1;
    const timer = { due: this.#now + delayMs, order: this.#order, action };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  soon(action: () => void): void {
    queueMicrotask(action);
  }

  /** Runs everything that does not wait for time. */
  async settle(): Promise<void> {
    for (let count = 0; count < settlingTurns; count += 1) await turn();
  }

  /** Advances time, timer by timer, and after each timer runs everything that does not wait for time. */
  async advance(durationMs: number): Promise<void> {
    const until = this.#now + durationMs;
    await this.settle();
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#timers.delete(next);
      this.#now = next.due;
      next.action();
      await this.settle();
    }
    this.#now = until;
  }

  #next(until: number): Timer | undefined {
    const due = [...this.#timers].filter((timer) => timer.due <= until);
    return due.toSorted((a, b) => a.due - b.due || a.order - b.order)[0];
  }
}
