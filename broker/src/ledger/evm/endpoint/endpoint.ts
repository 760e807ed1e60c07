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
/** After this many consecutive failures, an answer to the check of the chain no longer shortens the next pause. */
const lossesMax = 10;
/** How long an endpoint that does not answer a method ranks behind others for this method, in milliseconds. */
const lateMs = 60_000;

export class Endpoint {
  readonly connection: Connection;
  /** Number of the endpoint's newest known block. */
  head: number | undefined;
  /** Whether the endpoint has answered a request since the newest health check began; an error is no answer. */
  hasAnswered = false;
  /** Number of events after which the endpoint may serve another chain. */
  #doubts = 0;
  /** Value of `#doubts` at the start of the newest check that found the expected chain. */
  #doubtsChecked: number | undefined;
  #clock: Clock;
  #failures = 0;
  /** Failures since the endpoint last answered anything, including the check of its chain. */
  #lost = 0;
  #heldUntil = 0;
  /** Until when the endpoint asked for no requests (Retry-After), on the monotonic clock. */
  #pausedUntil = 0;
  #reason: string | undefined;
  #isOverLimit = false;
  #downSince = 0;
  /** Methods without an answer: the number of consecutive requests, and until when the endpoint ranks behind others for the method. */
  readonly #late = new Map<string, { readonly count: number; readonly until: number }>();

  constructor(connection: Connection, clock: Clock) {
    this.connection = connection;
    this.#clock = clock;
  }

  get name(): string {
    return this.connection.name;
  }

  /** Whether a check that began after the last doubt found that the endpoint serves the expected chain. */
  get isChecked(): boolean {
    return this.#doubtsChecked === this.#doubts;
  }

  /** Call it when a check of the chain begins. Call the returned function if the check finds the expected chain. */
  beginCheck(): () => void {
    const doubts = this.#doubts;
    return () => void (this.#doubtsChecked = Math.max(doubts, this.#doubtsChecked ?? 0));
  }

  /** Makes the next request check the chain first: another chain node may answer at this address. */
  doubt(): void {
    this.#doubts += 1;
  }

  /** Why the endpoint is down; undefined while it is up. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Whether a rate limit caused the last failure, and the endpoint has answered nothing since. */
  get isOverLimit(): boolean {
    return this.#isOverLimit;
  }

  /** When the endpoint went down, in milliseconds of the monotonic clock; only valid while it is down. */
  get downSince(): number {
    return this.#downSince;
  }

  /** Whether the endpoint is on hold: it gets no requests. */
  get isHeld(): boolean {
    return this.#clock.monotonic() < this.#heldUntil;
  }

  /** Consecutive failures; concurrent requests that fail count once. */
  get failures(): number {
    return this.#failures;
  }

  /** Whether at least the last `failuresMax` requests of this method got no answer, the newest of them within `lateMs`. */
  isLate(method: string): boolean {
    const { count, until } = this.#late.get(method) ?? { count: 0, until: 0 };
    return count >= failuresMax && this.#clock.monotonic() < until;
  }

  onAnswer(method: string): void {
    this.hasAnswered = true;
    this.#late.delete(method);
    // This answers a request from before the pause, which still holds.
    if (this.#isPaused) return;
    this.#failures = 0;
    this.#lost = 0;
    this.#heldUntil = 0;
    this.#reason = undefined;
    this.#isOverLimit = false;
  }

  /** Call it when the endpoint answered a part of the check of its chain. If it loses the next request, the pause after that is short. */
  onCheckAnswer(): void {
    if (this.#failures < lossesMax) this.#lost = 0;
  }

  /** Call it when a request got no answer, so that requests of its method go to other endpoints even if this one answers others. */
  onNoAnswer(method: string): void {
    const count = (this.#late.get(method)?.count ?? 0) + 1;
    this.#late.set(method, { count, until: this.#clock.monotonic() + lateMs });
  }

  onFailure(failure: EndpointError, failuresBefore: number): void {
    const { message, reach, retryAfterMs, isOverLimit } = failure;
    // A rate limit says nothing about the chain, and the requests of a check would count against the limit.
    if (!isOverLimit) this.doubt();
    this.#isOverLimit = isOverLimit;
    if (retryAfterMs !== undefined) this.#pause(message, retryAfterMs);
    if (this.#failures > failuresBefore) return;
    this.#failures += 1;
    this.#lost += 1;
    const isLost = reach === "unknown" && retryAfterMs === undefined;
    if (isLost && this.#failures < failuresMax) return;
    const delayMs = backoffDelayMs(isLost ? this.#lost : this.#failures, { ...holdLimits, fraction: 0 });
    this.#hold((this.#isPaused ? this.#reason : undefined) ?? message, delayMs);
  }

  /** Puts the endpoint on hold because it serves another chain. */
  onForeign(reason: string): void {
    this.doubt();
    this.#isOverLimit = false;
    this.#failures += 1;
    this.#hold(reason, foreignHoldMs);
  }

  get #isPaused(): boolean {
    return this.#clock.monotonic() < this.#pausedUntil;
  }

  #pause(message: string, retryAfterMs: number): void {
    const now = this.#clock.monotonic();
    this.#pausedUntil = Math.max(this.#pausedUntil, now + retryAfterMs);
    this.#hold(`${message}, and asked to wait ${Math.ceil((this.#pausedUntil - now) / 1_000)} s`, 0);
  }

  #hold(reason: string, delayMs: number): void {
    this.head = undefined;
    if (this.#reason === undefined) this.#downSince = this.#clock.monotonic();
    this.#reason = reason;
    this.#heldUntil = Math.max(this.#heldUntil, this.#pausedUntil, this.#clock.monotonic() + delayMs);
  }
}
