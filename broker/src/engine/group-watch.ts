import type { Logger } from "../lib/logger.ts";
import type { Clock } from "../ports/clock.ts";
import type { GroupHealth } from "./broker.ts";

/** Time between two checks, in milliseconds. */
const lookEveryMs = 1_000;

export interface GroupWatchOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly groupHealth: () => readonly GroupHealth[];
}

/** Logs when a group that was up goes down, whatever the cause, and when it is up again; and likewise when its publishes fail although it is up. */
export class GroupWatch {
  readonly #options: GroupWatchOptions;
  readonly #wereUp = new Set<string>();
  /** When each group that is down went down, by the monotonic clock. */
  readonly #downSince = new Map<string, number>();
  /** When the publishes of each group began to fail, by the monotonic clock. */
  readonly #failingSince = new Map<string, number>();
  #cancelTimer: (() => void) | undefined;

  constructor(options: GroupWatchOptions) {
    this.#options = options;
  }

  start(): void {
    for (const health of this.#options.groupHealth()) this.#look(health);
    this.#cancelTimer = this.#options.clock.after(lookEveryMs, () => this.start());
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  #look({ groupId, ready, reason, transactionFailure }: GroupHealth): void {
    if (ready) this.#lookAtTransactions(groupId, transactionFailure);
    const since = this.#downSince.get(groupId);
    if (ready) {
      this.#wereUp.add(groupId);
      if (since !== undefined) this.#reportUp(groupId, since);
    } else if (since === undefined && this.#wereUp.has(groupId)) {
      this.#downSince.set(groupId, this.#options.clock.monotonic());
      this.#options.logger.error("group down", { groupId, reason });
    }
  }

  #lookAtTransactions(groupId: string, reason: string | undefined): void {
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
