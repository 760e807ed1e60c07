import { channel } from "node:diagnostics_channel";
import { onTestFinished } from "vitest";
import type { Clock } from "../../../ports/clock.ts";

/** A clock whose timers fire when a test says so. */
export class ManualClock implements Clock {
  readonly #actions = new Set<() => void>();

  now(): number {
    return Date.now();
  }

  monotonic(): number {
    return performance.now();
  }

  after(_delayMs: number, action: () => void): () => void {
    const entry = () => action();
    this.#actions.add(entry);
    return () => this.#actions.delete(entry);
  }

  soon(action: () => void): void {
    setImmediate(action);
  }

  /** Fires every timer that is set now. */
  expire(): void {
    const actions = [...this.#actions];
    this.#actions.clear();
    for (const action of actions) action();
  }

  /** Fires the timers after the head of the next answer has been read. */
  expireAfterHead(): void {
    const heads = channel("undici:request:headers");
    const listener = () => {
      heads.unsubscribe(listener);
      setImmediate(() => this.expire());
    };
    heads.subscribe(listener);
    onTestFinished(() => {
      heads.unsubscribe(listener);
    });
  }
}
