import { backoffDelayMs } from "../../../lib/backoff.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Connection } from "./connection.ts";
import type { EndpointError } from "./endpoint-error.ts";

/** How long an endpoint that failed is left alone; it doubles with each further failure. */
const holdLimits = { delayMsMin: 250, delayMsMax: 10_000 };
/** How long an endpoint that serves another chain is left alone. */
const foreignHoldMs = 5_000;
/** Failures in a row after which an endpoint that did not answer counts as down; one may be a long request's own fault. */
const failuresMax = 2;

/** One endpoint among those of a group, with what is known of it. */
export class Member {
  readonly connection: Connection;
  /** The newest block that it was heard to have. */
  head: number | undefined;
  /** Set while it serves the chain that is wanted, as far as is known. */
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

  /** Why it is down; undefined while it is not. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Since when it is down. To be read while it is. */
  get downSince(): number {
    return this.#downSince;
  }

  /** Whether it is to be left alone for now. */
  get isHeld(): boolean {
    return this.#clock.monotonic() < this.#heldUntil;
  }

  /** Failures in a row; a request that fails counts only when none has failed since it was sent. */
  get failures(): number {
    return this.#failures;
  }

  onAnswer(): void {
    this.#failures = 0;
    this.#heldUntil = 0;
    this.#reason = undefined;
  }

  onFailure(failure: EndpointError, failuresBefore: number): void {
    // Whoever answers next at this address may be another node.
    this.isChecked = false;
    if (this.#failures > failuresBefore) return;
    this.#failures += 1;
    if (failure.reach === "unknown" && failure.retryAfterMs === undefined && this.#failures < failuresMax) return;
    const delayMs = backoffDelayMs(this.#failures, { ...holdLimits, fraction: 0 });
    this.#hold(failure.message, Math.max(delayMs, failure.retryAfterMs ?? 0));
  }

  /** It serves another chain. */
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
