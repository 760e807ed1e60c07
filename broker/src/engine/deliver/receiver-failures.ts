import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Logger, LogFields } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";

/** Minimum time between two warnings about failures of one receiver, in milliseconds. */
const reportEveryMs = 60_000;
/** Maximum number of receivers whose failures are counted. When more fail, the oldest is dropped; its next failure is then logged at once. */
const receiversCountedMax = 10_000;

interface Trouble {
  /** When a failure was last logged, in milliseconds of the monotonic clock. */
  loggedAt: number;
  /** Failures since the last log line. */
  unlogged: number;
  total: number;
  /** Whether the last log line about the receiver reports a failure. */
  isReported: boolean;
}

/**
 * Logs the failures of each receiver at most once a minute, with their count, and logs once when the receiver works again. A receiver is a host and port: if
 * it is down, all its subscriptions fail together. The rest of the url is not logged, since it may contain a token.
 */
export class ReceiverFailures {
  readonly #clock: Clock;
  readonly #troubles = new BoundedMap<string, Trouble>(receiversCountedMax);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call it when an attempt at `url` has failed. `fields` say which attempt, and why. */
  failed(url: string, { logger, fields }: { readonly logger: Logger; readonly fields: LogFields }): void {
    const receiver = hostOf(url);
    const trouble = this.#troubles.get(receiver) ?? this.#begin(receiver);
    trouble.unlogged += 1;
    trouble.total += 1;
    const now = this.#clock.monotonic();
    if (now - trouble.loggedAt < reportEveryMs) {
      logger.debug("delivery failed", { receiver, ...fields });
      return;
    }
    logger.warn("delivery failed", { receiver, failures: trouble.unlogged, ...fields });
    Object.assign(trouble, { loggedAt: now, unlogged: 0, isReported: true });
  }

  /** Call it when an attempt at `url` was accepted. */
  accepted(url: string, logger: Logger): void {
    if (this.#troubles.size === 0) return;
    const receiver = hostOf(url);
    const trouble = this.#troubles.get(receiver);
    if (trouble === undefined) return;
    if (trouble.isReported) logger.info("delivery works again", { receiver, failures: trouble.total });
    // Keep a recent entry: if one subscription of a receiver fails and another does not, this logs only one failure a minute.
    if (this.#clock.monotonic() - trouble.loggedAt >= reportEveryMs) this.#troubles.delete(receiver);
    else Object.assign(trouble, { total: 0, isReported: false });
  }

  #begin(receiver: string): Trouble {
    const trouble = { loggedAt: Number.NEGATIVE_INFINITY, unlogged: 0, total: 0, isReported: false };
    this.#troubles.set(receiver, trouble);
    return trouble;
  }
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "…";
}
