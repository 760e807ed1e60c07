import { isBrokerError } from "@stele/wire";
import { backoffDelayMs } from "../../lib/backoff.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import type { Randomness } from "../../ports/randomness.ts";
import { LeaseLostError } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../../lib/pause.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { Follower, type FollowerOptions } from "./follower.ts";
import { Overtaken } from "./overtaken.ts";
import type { Watcher } from "./watcher.ts";

/** Consecutive failures after which this node releases the lease, unless the store is unreachable. A successful step resets the count. */
const failuresMax = 6;
/** Longest wait between two attempts of a node that shares the store, in milliseconds. */
const retryDelayMsMax = 1_000;
/** Wait between two checks whether this node must release the lease, in milliseconds. */
const outagePollMs = 1_000;

export interface TermOptions extends Omit<FollowerOptions, "lease"> {
  readonly watcher: Watcher;
  readonly randomness: Randomness;
  readonly limits: EngineLimits;
}

/**
 * `lost`: this node has lost the lease. `away`: another node should follow, because this node's chain does not answer or is behind, or following failed
 * repeatedly. `ended`: `until` aborted.
 */
export type TermOutcome = "lost" | "away" | "ended";

/** Follows a group while this node holds the lease. */
export class Term {
  readonly #options: TermOptions;
  readonly #lease: GroupLease;
  readonly #overtaken: Overtaken;
  readonly #trouble: ReportedTrouble;
  #failures = 0;
  /** Aborts when this node must read the head of the stored index again. */
  #again = new AbortController();

  constructor(options: TermOptions, lease: GroupLease) {
    this.#options = options;
    this.#lease = lease;
    this.#overtaken = new Overtaken(options);
    this.#trouble = new ReportedTrouble(options.logger, "following failed", "following again");
  }

  hearOf(blockNumber: number): void {
    this.#overtaken.hear(blockNumber);
  }

  /** Follows until the lease is lost, another node should follow, or `until` aborts. Never rejects. */
  async serve(until: AbortSignal): Promise<TermOutcome> {
    const away = new AbortController();
    const over = new AbortController();
    const signal = AbortSignal.any([until, away.signal]);
    const watching = this.#watchChain(away, AbortSignal.any([signal, over.signal]));
    try {
      while (!signal.aborted) {
        const outcome = await this.#tryToFollow(signal);
        if (outcome !== undefined) return outcome;
      }
      return until.aborted ? "ended" : "away";
    } finally {
      over.abort();
      await watching;
    }
  }

  async #tryToFollow(signal: AbortSignal): Promise<TermOutcome | undefined> {
    try {
      await this.#follow(signal);
      return undefined;
    } catch (error) {
      if (error instanceof LeaseLostError) return "lost";
      if (signal.aborted) return undefined;
      return await this.#waitAfter(error, signal);
    }
  }

  /**
   * First offers the readers the blocks that an earlier follower indexed, or that this node indexed before a failure. Then the progress equals the head of
   * the store, and no other node writes the index while this node has the lease.
   */
  async #follow(until: AbortSignal): Promise<void> {
    this.#again = new AbortController();
    const signal = AbortSignal.any([until, this.#again.signal]);
    const { watcher, ledger, progress, health, restarter } = this.#options;
    const found = await watcher.catchUp(signal);
    const head = found && { number: found.blockNumber, hash: found.hash };
    // Roll back before the index grows again: the chain may have replaced the blocks that the database lost.
    if (head !== undefined)
      while (restarter.owesRollBack && !signal.aborted) await restarter.rollBack(head, this.#lease);
    if (signal.aborted) return;
    // Callers may wait for a block that the chain has removed: end their waits.
    if (this.#failures > 0 && !ledger.isFinal) progress.rollBackTo(progress.blockNumber);
    const follower = new Follower({ ...this.#options, lease: this.#lease });
    await follower.begin(head, signal);
    health.follows();
    while (!signal.aborted) await follower.follow(signal, () => this.#onStep());
  }

  #onStep(): void {
    this.#failures = 0;
    this.#trouble.done();
    this.#options.health.follows();
  }

  async #waitAfter(error: unknown, signal: AbortSignal): Promise<"away" | undefined> {
    const { health, clock } = this.#options;
    this.#failures += 1;
    health.failed(error);
    this.#trouble.failed(error);
    if (this.#failures >= failuresMax && !isBrokerError(error, "storeUnreachable")) return "away";
    await pause(clock, retryDelayMs(this.#failures, this.#options), signal);
    return undefined;
  }

  /** Aborts `away` when another node should follow, and `again` when the stored index has become shorter, or the readers must restart at its end. */
  async #watchChain(away: AbortController, signal: AbortSignal): Promise<void> {
    const { clock, logger, progress } = this.#options;
    const since = clock.monotonic();
    while (!signal.aborted) {
      const isOvertaken = await this.#overtaken.check(signal);
      if (isOvertaken)
        logger.warn("chain is behind those of other nodes, leaving the group to them", { index: progress.blockNumber });
      if (isOvertaken || this.#isChainAway(since)) away.abort();
      // Without this check, only a refused write would show that the stored index has changed, and a chain without new blocks causes no write.
      else if (progress.isOutdated || (await this.#isShortened(signal))) this.#again.abort();
      await pause(clock, outagePollMs, signal);
    }
  }

  /** See {@link Watcher.isShortened}; false if the store does not answer. */
  async #isShortened(signal: AbortSignal): Promise<boolean> {
    const asking = this.#options.watcher.isShortened().catch(() => false);
    return (await untilAborted(asking, signal)) === true;
  }

  /** Whether the chain has not answered for too long during this term. */
  #isChainAway(since: number): boolean {
    const { clock, ledger, limits } = this.#options;
    const { outage } = ledger.view();
    return outage !== undefined && clock.monotonic() - Math.max(outage.since, since) >= limits.outageToleranceMs;
  }
}

/** Wait after `failures` consecutive failures, in milliseconds. `delayMsMax` is left out by a node that shares the store. */
export function retryDelayMs(
  failures: number,
  options: { readonly randomness: Randomness; readonly limits: EngineLimits; readonly delayMsMax?: number },
): number {
  const { randomness, limits, delayMsMax = retryDelayMsMax } = options;
  return backoffDelayMs(failures, { delayMsMin: limits.followDelayMsMin, delayMsMax, fraction: randomness.fraction() });
}
