import type { ReceiverFailures } from "./receiver-failures.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { AttemptAnswer, AttemptOutcome, Notification, Sink } from "../../ports/sink.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../../lib/pause.ts";
import type { AttemptHistory } from "./attempt-history.ts";

export interface AttemptsOptions {
  readonly sink: Sink;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** The failures of all receivers of this node. */
  readonly failures: ReceiverFailures;
  /** The attempts of all subscriptions of this node. */
  readonly history: AttemptHistory;
}

/**
 * How the delivery of one event ended. `gone`: the receiver wants no further events. `failed`: too many attempts failed, or for too long. `interrupted`: a
 * signal aborted first, or this node may not deliver any more; no acknowledgement is known.
 */
export type DeliveryResult = { readonly status: "accepted" | "gone" | "interrupted" } | FailedDelivery;

/** `retryAfterMs`: the wait that the receiver asked for with the last attempt. */
export interface FailedDelivery {
  readonly status: "failed";
  readonly attempts: number;
  readonly reason: string;
  readonly retryAfterMs: number | undefined;
}

/** Failed attempts to deliver an event, and the total wait after them in milliseconds. */
export interface Failing {
  readonly attempts: number;
  readonly waitedMs: number;
}

/** The wait before the next attempt. */
export interface Wait {
  /** Failed attempts so far. */
  readonly attempts: number;
  readonly waitMs: number;
  /** Whether the receiver asked for this wait. */
  readonly isAsked: boolean;
}

/** `stopping`: make no further attempt, and do not send one that waits. `aborting`: abort the attempt in progress. */
export interface DeliverySignals {
  readonly stopping: CancelSignal;
  readonly aborting: CancelSignal;
  /** Returns a signal that ends later waits early, to attempt at once; if left out, nothing ends them early. */
  readonly retrying?: (() => CancelSignal) | undefined;
  /** Waits until the owner's quota allows an attempt; undefined if it needs no wait. */
  readonly turn?: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** Whether the caller has already waited for the turn of the first attempt; false if left out. */
  readonly hasTurn?: boolean | undefined;
  /** Whether this node may still deliver; called right before each attempt is sent. */
  readonly mayStart?: (() => boolean) | undefined;
  /** Failures in an earlier run of the broker or at another node; none if left out. */
  readonly failing?: Failing | undefined;
  /** Remaining milliseconds of a wait that the receiver asked for, read before each attempt; 0 if left out. */
  readonly leftMs?: (() => number) | undefined;
  /** Failed attempts after which delivery ends; if undefined, only the failed time ends it. */
  readonly attemptsMax?: number | undefined;
  /** Called before each wait, except that of `leftMs`. */
  readonly onWaiting?: ((wait: Wait) => void) | undefined;
  /** Called after each wait, also that of `leftMs`. */
  readonly onFailing?: ((failing: Failing) => void) | undefined;
}

/**
 * Delivers one event: attempt after attempt, with exponential backoff between them, until the receiver accepts it, is gone, has failed `attemptsMax`
 * times, or has failed for `giveUpAfterMs`. The failed time is the sum of the waits between attempts, so a clock step or a machine that
 * slept does not add to it.
 */
export async function deliver(
  parts: AttemptsOptions,
  notification: Notification,
  signals: DeliverySignals,
): Promise<DeliveryResult> {
  let { attempts, waitedMs } = signals.failing ?? nothingFailed;
  const { stopping, retrying } = signals;
  const wait = (waitMs: number): Promise<number> =>
    waitFor(parts.clock, waitMs, retrying === undefined ? [stopping] : [stopping, retrying()]);
  let hasTurn = signals.hasTurn === true;
  while (!stopping.aborted) {
    const leftMs = signals.leftMs?.() ?? 0;
    if (leftMs > 0) {
      const leftWaitedMs = await wait(leftMs);
      if (attempts > 0) waitedMs += leftWaitedMs; // Before the first attempt, this event has not failed.
      signals.onFailing?.({ attempts, waitedMs });
      // Attempt now, even if the receiver has asked another topic to wait meanwhile: else one topic could block the others for ever.
      if (stopping.aborted) break;
    }
    const turn = hasTurn ? undefined : signals.turn?.(stopping);
    if (turn !== undefined) await turn;
    hasTurn = false;
    const outcome = await attempt(parts, notification, signals);
    if (outcome.status === "accepted") {
      parts.failures.accepted(notification.subscription.url, parts.logger);
      return { status: "accepted" };
    }
    if (outcome.status === "withheld" || signals.aborting.aborted) return { status: "interrupted" };
    report(parts, notification, outcome);
    if (outcome.status === "gone") return { status: "gone" };
    attempts += 1;
    if (waitedMs >= parts.limits.giveUpAfterMs || attempts >= (signals.attemptsMax ?? Number.POSITIVE_INFINITY)) {
      return { status: "failed", attempts, reason: outcome.reason, retryAfterMs: outcome.retryAfterMs };
    }
    const waitMs = toWaitMs(parts, attempts, outcome.retryAfterMs);
    signals.onWaiting?.({ attempts, waitMs, isAsked: outcome.retryAfterMs !== undefined });
    waitedMs += await wait(waitMs);
    signals.onFailing?.({ attempts, waitedMs });
  }
  return { status: "interrupted" };
}

type BackoffParts = Pick<AttemptsOptions, "clock" | "randomness" | "limits">;

/** Waits for the backoff after `failures` failures, or until `signal` aborts. */
export async function pauseAfter(parts: BackoffParts, failures: number, signal: CancelSignal): Promise<void> {
  await pause(parts.clock, toWaitMs(parts, failures), signal);
}

/** The backoff after `failures` failures, and at least `waitMsMin`. Whole milliseconds: the store keeps their sum as an integer. */
function toWaitMs(parts: BackoffParts, failures: number, waitMsMin = 0): number {
  const { retryDelayMsMin: delayMsMin, retryDelayMsMax: delayMsMax } = parts.limits;
  const delayMs = backoffDelayMs(failures, { delayMsMin, delayMsMax, fraction: parts.randomness.fraction() });
  return Math.max(delayMs, Math.ceil(waitMsMin));
}

/** Waits for `waitMs`, or until a signal aborts. Returns the milliseconds waited, at most `waitMs`. */
async function waitFor(clock: Clock, waitMs: number, signals: readonly CancelSignal[]): Promise<number> {
  const startedAt = clock.monotonic();
  await pause(clock, waitMs, ...signals);
  return signals.some(({ aborted }) => aborted) ? Math.min(waitMs, Math.floor(clock.monotonic() - startedAt)) : waitMs;
}

const nothingFailed: Failing = { attempts: 0, waitedMs: 0 };

/**
 * Makes one attempt, and counts and records it unless it was withheld. Not an async function, to save memory: tens of thousands of attempts may wait for their
 * turn.
 */
export function attempt(
  parts: Pick<AttemptsOptions, "sink" | "clock" | "metrics" | "history" | "logger">,
  notification: Notification,
  { stopping, aborting, mayStart: mayDeliver }: Pick<DeliverySignals, "stopping" | "aborting" | "mayStart">,
): Promise<AttemptOutcome> {
  const { clock, metrics, history } = parts;
  const startedAt = clock.monotonic();
  let answer: AttemptAnswer | undefined;
  const onAnswer = (given: AttemptAnswer): void => void (answer = given);
  const mayStart = (): boolean => !stopping.aborted && mayDeliver?.() !== false;
  const ended = (outcome: AttemptOutcome): AttemptOutcome => {
    if (outcome.status === "withheld") return outcome;
    const durationMs = clock.monotonic() - startedAt;
    metrics.attemptEnded(outcome.status, durationMs);
    history.note(notification, { outcome, answer, at: clock.now(), durationMs });
    return outcome;
  };
  const broken = (error: unknown): AttemptOutcome => ended(toFailure(parts, notification, error));
  try {
    return parts.sink.attempt(notification, aborting, { mayStart, stopping, onAnswer }).then(ended, broken);
  } catch (error) {
    return Promise.resolve(broken(error));
  }
}

/** The outcome of an attempt if the sink broke its contract and threw or rejected: only this attempt fails. */
function toFailure(
  { logger }: Pick<AttemptsOptions, "logger">,
  { subscription, eventId }: Notification,
  error: unknown,
): AttemptOutcome {
  logger.error("delivery failed inside the broker, report this as a bug", {
    subscriptionId: subscription.id,
    eventId,
    error,
  });
  return { status: "failed", reason: "the broker could not make the attempt" };
}

function report(
  { failures, logger }: AttemptsOptions,
  { subscription, eventId }: Notification,
  { status, reason }: Exclude<AttemptOutcome, { status: "accepted" | "withheld" }>,
): void {
  failures.failed(subscription.url, { logger, fields: { subscriptionId: subscription.id, eventId, status, reason } });
}
