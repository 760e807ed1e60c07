import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../../lib/pause.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { Deadline } from "../time.ts";
import type { IndexProgress } from "../index-progress.ts";

/** Wait between two checks of the index, in milliseconds. The chain is polled less often. */
const checkIntervalMs = 1_000;

/** The parts that compare the index with this node's chain. */
export interface FinalOptions {
  readonly ledger: Ledger;
  readonly progress: IndexProgress;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

export interface StallDetectorOptions extends FinalOptions {
  readonly coordinator: Pick<Coordinator, "reportAhead">;
  readonly logger: Logger;
}

/** A block that is final at this node but missing from the index; the newest indexed block; and when this node first saw both (monotonic, in ms). */
interface Sight {
  readonly blockNumber: number;
  readonly index: number;
  readonly since: number;
}

/**
 * Detects that the index does not advance although a later block has long been final on this node's own chain, and reports that block to the follower.
 * This happens when the follower's endpoint returns no new blocks.
 */
export class StallDetector {
  readonly #options: StallDetectorOptions;
  #sight: Sight | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: StallDetectorOptions) {
    this.#options = options;
  }

  /** How the index has stalled, for health; undefined if it has not, or while the follower may still release the lease. */
  get failure(): string | undefined {
    const { clock, limits, progress } = this.#options;
    const sight = this.#sight;
    if (sight === undefined || sight.index !== progress.blockNumber) return undefined;
    if (clock.monotonic() - sight.since < 2 * limits.outageToleranceMs) return undefined;
    return (
      `the index stands still at block ${sight.index}, and block ${sight.blockNumber} has long been final on this node's chain: ` +
      "look at the log of the node that follows"
    );
  }

  /** Looks for a stall periodically while `isWatching` returns true, and always for the end of a rebuild, until `signal` aborts. Never rejects. */
  async watch(isWatching: () => boolean, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (isWatching()) await this.#check(signal);
      else this.#sight = undefined;
      if (this.#options.progress.isRebuilding) await this.#endRebuilding(signal);
      await pause(this.#options.clock, checkIntervalMs, signal);
    }
  }

  /** Ends the rebuilding of an emptied index that has every final block: a reorg may have left the chain shorter than the index was. */
  async #endRebuilding(signal: AbortSignal): Promise<void> {
    const { progress } = this.#options;
    const final = await findFinal(this.#options, signal);
    if (final !== -1 && final === progress.blockNumber) progress.rebuildAtMostTo(final);
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { progress, clock, limits } = this.#options;
    const now = clock.monotonic();
    const index = progress.blockNumber;
    if (this.#sight === undefined || index >= this.#sight.blockNumber) await this.#ask(signal);
    else if (index !== this.#sight.index) this.#sight = { ...this.#sight, index, since: now };
    else if (now - this.#sight.since >= limits.outageToleranceMs) await this.#confirm(this.#sight, signal);
  }

  /** Reports the block, unless a reorg has removed it from this node's chain. If the chain does not answer, it may still have the block. */
  async #confirm(sight: Sight, signal: AbortSignal): Promise<void> {
    const final = await findFinal(this.#options, signal);
    if (final === -1 || final >= sight.blockNumber) await this.#report(sight);
    else this.#sight = final > sight.index ? { ...sight, blockNumber: final } : undefined;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { progress, clock, limits } = this.#options;
    this.#sight = undefined;
    if (clock.monotonic() - this.#askedAt < limits.outageToleranceMs) return;
    this.#askedAt = clock.monotonic();
    const blockNumber = await findFinal(this.#options, signal);
    const index = progress.blockNumber;
    if (blockNumber > index) this.#sight = { blockNumber, index, since: clock.monotonic() };
  }

  async #report({ blockNumber, index }: Sight): Promise<void> {
    const { coordinator, ledger, logger } = this.#options;
    logger.debug("index stalled", { index, blockNumber });
    try {
      await coordinator.reportAhead({ groupId: ledger.groupId, blockNumber });
    } catch (error) {
      logger.debug("stalled index not reported", { error });
    }
  }
}

/** The newest final block of this node's chain; -1 if the call fails, the chain does not answer in time, or `signal` aborts. */
export async function findFinal({ ledger, clock, limits }: FinalOptions, signal: AbortSignal): Promise<number> {
  using deadline = new Deadline(clock, limits.outageToleranceMs, signal);
  const asking = ledger.finalBlockNumber(deadline.signal).catch(() => -1);
  return (await untilAborted(asking, deadline.signal)) ?? -1;
}
