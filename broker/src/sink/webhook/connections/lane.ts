import type { Connection } from "./connection.ts";
import { Pacer } from "./pacer.ts";

/** Somebody who waits for a connection. */
export interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
  readonly abandon: () => void;
}

/** Of a receiver: whether it answered its last request. `new`: none has ended yet. */
export type Standing = "new" | "proven" | "failing";

export interface LaneOptions {
  readonly key: string;
  readonly origin: string;
  readonly bytesPerSecondMax: number;
  /** As the receiver has asked for; undefined for any number. */
  readonly requestsPerMinuteMax?: number | undefined;
}

const secondMs = 1000;
const minuteMs = 60 * secondMs;

/** One receiver: who waits for a connection to it, in their order, and how fast they may go. */
export class Lane {
  readonly key: string;
  readonly origin: string;
  readonly waiting = new Set<Waiter>();
  /** Open connections that nobody uses; the last is the one used last. */
  readonly idle: Connection[] = [];
  inUse = 0;
  standing: Standing = "new";
  /** While it waits for its pace: ends the timer. */
  cancelTimer: (() => void) | undefined;
  readonly #bytes: Pacer;
  readonly #requests: Pacer | undefined;

  constructor({ key, origin, bytesPerSecondMax, requestsPerMinuteMax }: LaneOptions) {
    this.key = key;
    this.origin = origin;
    this.#bytes = new Pacer({ perMs: bytesPerSecondMax / secondMs, burstMs: secondMs });
    if (requestsPerMinuteMax !== undefined) {
      this.#requests = new Pacer({ perMs: requestsPerMinuteMax / minuteMs, burstMs: 0 });
    }
  }

  delayMs(now: number): number {
    return Math.max(this.#bytes.delayMs(now), this.#requests?.delayMs(now) ?? 0);
  }

  /** The first of those who wait, which is let go. */
  takeFirst(now: number): Waiter | undefined {
    const [first] = this.waiting;
    if (first === undefined) return undefined;
    this.waiting.delete(first);
    this.charge(first.bytes, now);
    return first;
  }

  /** Counts a request against its pace. */
  charge(bytes: number, now: number): void {
    this.#bytes.take(now, bytes);
    this.#requests?.take(now, 1);
  }
}
