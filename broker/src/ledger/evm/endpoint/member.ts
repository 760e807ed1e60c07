import { backoffDelayMs } from "../../../lib/backoff.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Connection } from "./connection.ts";
import type { EndpointError } from "./endpoint-error.ts";

/** Bounds of the pause after a failure, in milliseconds; the pause doubles with each further failure. */
const holdLimits = { delayMsMin: 250, delayMsMax: 10_000 };
/** Pause for an endpoint that serves another chain, in milliseconds. */
const foreignHoldMs = 5_000;
/** Consecutive lost or late answers after which an endpoint counts as down; a single one may be due to a long request. Other failures count at once. */
const failuresMax = 2;

/** One endpoint of a group, with its health. */
export class Member {
  readonly connection: Connection;
  /** Number of its newest known block. */
  head: number | undefined;
  /** Whether it serves the expected chain, as far as known. */
  isChecked = false;
  #clock: Clock;
  #failures = 0;
  #heldUntil = 0;
  #reason: string | undefined;
  #downSince = 0;

  constructor(connection: Connection, clock: Clock) {
    this.connection = connection;
    this.#clock = clock;
  }

  get name(): string {
    return this.connection.name;
  }

  /** Why it is down; undefined while it is up. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** When it went down, in milliseconds of the monotonic clock. Read it only while it is down. */
  get downSince(): number {
    return this.#downSince;
  }

  /** Whether it is on hold: it gets no requests. */
  get isHeld(): boolean {
    return this.#clock.monotonic() < this.#heldUntil;
  }

  /** Consecutive failures; concurrent requests that fail count once. */
  get failures(): number {
    return this.#failures;
  }

  onAnswer(): void {
    this.#failures = 0;
    this.#heldUntil = 0;
    this.#reason = undefined;
  }

  onFailure(failure: EndpointError, failuresBefore: number): void {
    // Check the chain again: another node may answer next at this address.
    this.isChecked = false;
    if (this.#failures > failuresBefore) return;
    this.#failures += 1;
    if (failure.reach === "unknown" && failure.retryAfterMs === undefined && this.#failures < failuresMax) return;
    const delayMs = backoffDelayMs(this.#failures, { ...holdLimits, fraction: 0 });
    this.#hold(failure.message, Math.max(delayMs, failure.retryAfterMs ?? 0));
  }

  /** Call it when the endpoint serves another chain. */
  onForeign(reason: string): void {
    this.#failures += 1;
    this.#hold(reason, foreignHoldMs);
  }

  #hold(reason: string, delayMs: number): void {
    this.isChecked = false;
    this.head = undefined;
    if (this.#reason === undefined) this.#downSince = this.#clock.monotonic();
    this.#reason = reason;
    this.#heldUntil = this.#clock.monotonic() + delayMs;
  }
}
