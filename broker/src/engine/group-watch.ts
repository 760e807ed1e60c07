import type { Logger } from "../lib/logger.ts";
import type { Clock } from "../ports/clock.ts";
import type { GroupHealth } from "./broker.ts";

/** Time between two checks, in milliseconds. */
const checkIntervalMs = 1_000;

export interface GroupWatchOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly groupHealth: () => readonly GroupHealth[];
}

/**
 * Logs when a group goes down, whatever the cause, and when it is up again; nothing before it was up for the first time. While a group is up, logs when this
 * node's transactions begin to fail, and when they succeed again.
 */
export class GroupWatch {
  readonly #options: GroupWatchOptions;
  /** Groups that have been up since the start. */
  readonly #onceUp = new Set<string>();
  /** When the group went down, in milliseconds of the monotonic clock; only for groups that are down. */
  readonly #downSince = new Map<string, number>();
  /** When the group's transactions began to fail, in milliseconds of the monotonic clock; only for groups whose transactions fail. */
  readonly #failingSince = new Map<string, number>();
  #cancelTimer: (() => void) | undefined;

  constructor(options: GroupWatchOptions) {
    this.#options = options;
  }

  start(): void {
    for (const health of this.#options.groupHealth()) this.#check(health);
    this.#cancelTimer = this.#options.clock.after(checkIntervalMs, () => this.start());
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  #check({ groupId, ready, reason, transactionFailure }: GroupHealth): void {
    if (ready) this.#checkTransactions(groupId, transactionFailure);
    const since = this.#downSince.get(groupId);
    if (ready) {
      this.#onceUp.add(groupId);
      if (since !== undefined) this.#reportUp(groupId, since);
    } else if (since === undefined && this.#onceUp.has(groupId)) {
      this.#downSince.set(groupId, this.#options.clock.monotonic());
      this.#options.logger.error("group down", { groupId, reason });
    }
  }

  #checkTransactions(groupId: string, reason: string | undefined): void {
    const { clock, logger } = this.#options;
    const since = this.#failingSince.get(groupId);
    if (reason !== undefined && since === undefined) {
      this.#failingSince.set(groupId, clock.monotonic());
      logger.error("transactions fail", { groupId, reason });
    } else if (reason === undefined && since !== undefined) {
      this.#failingSince.delete(groupId);
      logger.info("transactions succeed again", { groupId, failedMs: Math.round(clock.monotonic() - since) });
    }
  }

  #reportUp(groupId: string, since: number): void {
    this.#downSince.delete(groupId);
    const downMs = Math.round(this.#options.clock.monotonic() - since);
    this.#options.logger.info("group up", { groupId, downMs });
  }
}
