import type { Ledger } from "../../ports/ledger.ts";
import type { IndexProgress } from "../index-progress.ts";

/** How a node keeps up with a group's index: it writes the index, or reads what another node writes. */
export interface Role {
  /** Whether this node writes the index now. */
  readonly isFollowing: boolean;
  /**
   * Call it after ledger and store have started. Waits until the index contains every block that was final at the time of the call, or `signal` aborts.
   * Call it again after a failure.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Stops after the write in progress. */
  stop(): Promise<void>;
}

/** Waits until the index contains every block that is final now, or `signal` aborts. @throws BrokerError 200205. */
export async function untilCaughtUp(
  { ledger, progress }: { readonly ledger: Ledger; readonly progress: IndexProgress },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && !(await progress.waitFor(await ledger.finalBlockNumber(signal), signal)));
}
