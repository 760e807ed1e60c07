import { Deadline } from "../time.ts";
import { findFinal, type FinalOptions } from "./stall-detector.ts";

/** How a node keeps up with a group's index: it writes the index, or reads what another node writes. */
export interface Role {
  /** Defined while this node writes the index: another number each time it begins to. */
  readonly epoch: number | undefined;
  /**
   * Call it after ledger and store have started. Waits until the index contains every block that was final at the time of the call, or `signal` aborts.
   * Call it again after a failure.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Stops after the write in progress. */
  stop(): Promise<void>;
}

/** How long a start waits for a block until it asks the chain again, in milliseconds. */
const askAgainMs = 5_000;

/**
 * Waits until the index contains every block that is final now, or `signal` aborts. If a reorg removes some of these blocks meanwhile, waits until the index
 * ends at the newest final block. @throws BrokerError 200205.
 */
export async function untilCaughtUp(options: FinalOptions, signal: AbortSignal): Promise<void> {
  const { ledger, progress, clock } = options;
  const wanted = await ledger.finalBlockNumber(signal);
  while (!signal.aborted) {
    using deadline = new Deadline(clock, askAgainMs, signal);
    if (await progress.waitFor(wanted, deadline.signal)) return;
    const final = await findFinal(options, signal);
    // A lagging endpoint says nothing about a reorg, so a block below the index's newest one does not count.
    if (final !== -1 && final === progress.blockNumber) return;
  }
}
