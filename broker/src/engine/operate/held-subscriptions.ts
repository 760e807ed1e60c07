import type { GroupId } from "../../domain/group-id.ts";
import { joinTexts } from "../../lib/join-texts.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { HeldCount, Store } from "../../ports/store.ts";

/** Time between two counts, in milliseconds. */
const countEveryMs = 10_000;

export interface HeldSubscriptionsOptions {
  readonly store: Pick<Store, "countHeld">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How many subscriptions of a group no node delivers to, by reason. */
export interface Held {
  readonly suspended: number;
  readonly paused: number;
  /** Those that this node has found locked; they may be suspended or paused as well. */
  readonly locked: number;
}

/** Counts, every few seconds, the subscriptions to which no node delivers. Health and metrics show the counts. */
export class HeldSubscriptions {
  readonly #options: HeldSubscriptionsOptions;
  readonly #trouble: ReportedTrouble;
  #counts: readonly HeldCount[] = [];
  #cancelTimer: (() => void) | undefined;
  /** Number of counts begun. Only the newest sets a timer. */
  #begun = 0;
  #isStopped = false;

  constructor(options: HeldSubscriptionsOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(
      options.logger,
      "held subscriptions not counted",
      "held subscriptions counted again",
    );
  }

  /** Counts now, and then every {@link countEveryMs}. Never rejects. */
  async start(): Promise<void> {
    this.#cancelTimer?.();
    const number = (this.#begun += 1);
    try {
      this.#counts = await this.#options.store.countHeld();
      this.#trouble.done();
    } catch (error) {
      if (!this.#isStopped) this.#trouble.failed(error);
    }
    if (this.#isStopped || number !== this.#begun) return;
    this.#cancelTimer = this.#options.clock.after(countEveryMs, () => void this.start());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  of(groupId: GroupId): Held {
    const own = this.#counts.filter((one) => one.groupId === groupId);
    const count = (state: HeldCount["state"]): number => own.find((one) => one.state === state)?.count ?? 0;
    return { suspended: count("suspended"), paused: count("paused"), locked: count("locked") };
  }

  /** What the operator has to do; undefined if there is nothing to do. */
  findWarning(groupId: GroupId): string | undefined {
    const { suspended, locked } = this.of(groupId);
    const list = "GET /admin/v1/subscriptions?state=";
    return joinTexts([
      suspended === 0 ? undefined : `${inWords(suspended)} suspended: ${list}suspended lists those to resume`,
      locked === 0
        ? undefined
        : `${inWords(locked)} locked, since no key opens their secrets: ${lockedRemedy}; ${list}locked lists them`,
    ]);
  }
}

const lockedRemedy = "restore the key file and start again, or have each receiver subscribe again with its secret";

function inWords(count: number): string {
  return count === 1 ? "1 subscription is" : `${count} subscriptions are`;
}
