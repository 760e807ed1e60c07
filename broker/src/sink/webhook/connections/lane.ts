import type { Connection } from "./connection.ts";
import { Pacer } from "./pacer.ts";

/** A request that waits for a connection. */
export interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
  readonly abandon: () => void;
}

/** Whether the receiver answered its last request. `new`: no request has ended yet. */
export type ReceiverHealth = "new" | "proven" | "failing";

export interface LaneOptions {
  readonly key: string;
  readonly origin: string;
  readonly bytesPerSecondMax: number;
  /** Rate that the receiver granted; undefined if unlimited. */
  readonly requestsPerMinuteMax?: number | undefined;
}

const secondMs = 1000;
const minuteMs = 60 * secondMs;

/**
 * The waiting requests of one receiver, in order, with its rate limits and idle connections. A url for which the receiver granted a rate has a lane of its own.
 */
export class Lane {
  readonly key: string;
  readonly origin: string;
  readonly waiting = new Set<Waiter>();
  /** Idle connections; the last was used most recently. */
  readonly idle: Connection[] = [];
  inUse = 0;
  health: ReceiverHealth = "new";
  /** Cancels the timer while the lane waits for its rate limit. */
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

  /** Removes and returns the first waiting request, and charges it to the rate limits. */
  takeFirst(now: number): Waiter | undefined {
    const [first] = this.waiting;
    if (first === undefined) return undefined;
    this.waiting.delete(first);
    this.charge(first.bytes, now);
    return first;
  }

  /** Charges a request to the rate limits. */
  charge(bytes: number, now: number): void {
    this.#bytes.take(now, bytes);
    this.#requests?.take(now, 1);
  }
}
