import type { Logger } from "../../../lib/logger.ts";
import type { StoreError } from "../store-error.ts";
import { lossesCountMs, outagesReportedEveryMs } from "./limits.ts";

interface Trouble {
  readonly since: number;
  readonly reason: string;
  readonly isUnreachable: boolean;
  readonly lost: number;
}

/**
 * Logs the outages of a pool's server: one line at the beginning and one at the end, for any number of affected connections and calls.
 * After a line about lost connections, another line follows if the server turns out to be unreachable.
 */
export class PoolReport {
  readonly #logger: Logger;
  #trouble: Trouble | undefined;
  /** The kind of outage in the last log line. */
  #reported: "lost" | "unreachable" | undefined;
  #reportedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `logger` must add the pool's name to each line. */
  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Call it when a connection broke. */
  lost(error: StoreError): void {
    const trouble = this.#begin(error);
    this.#trouble = { ...trouble, lost: trouble.lost + 1 };
    this.#logger.debug("database connection lost", { reason: error.message });
  }

  /** Call it when no connection could be made. */
  unreachable(error: StoreError): void {
    this.#trouble = { ...this.#begin(error), reason: error.message, isUnreachable: true };
    if (this.#reported === "lost") this.#report();
  }

  /**
   * Call it when the server answered. Logs the end of an outage whose beginning is logged. If the line about the beginning is not due yet, logs nothing: that
   * line still comes, and the next call after it logs the end.
   */
  reached(): void {
    if (this.#trouble === undefined || this.#reported === undefined) return;
    const { since, lost } = this.#trouble;
    this.#trouble = undefined;
    this.#reported = undefined;
    this.#logger.info("database reached again", {
      connectionsLost: lost,
      awayMs: Math.round(performance.now() - since),
    });
  }

  /** Discards a line that is not logged yet. */
  end(): void {
    clearTimeout(this.#timer);
  }

  #begin({ message }: StoreError): Trouble {
    if (this.#trouble !== undefined) return this.#trouble;
    const since = performance.now();
    const delayMs = Math.max(lossesCountMs, this.#reportedAt + outagesReportedEveryMs - since);
    this.#timer = setTimeout(() => this.#report(), delayMs).unref();
    return { since, reason: message, isUnreachable: false, lost: 0 };
  }

  #report(): void {
    if (this.#trouble === undefined) return;
    const { reason, isUnreachable, lost } = this.#trouble;
    this.#reported = isUnreachable ? "unreachable" : "lost";
    this.#reportedAt = performance.now();
    const message = isUnreachable ? "database unreachable" : "database connections lost";
    this.#logger.warn(message, { connectionsLost: lost, reason });
  }
}
