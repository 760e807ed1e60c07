import type { Ledger } from "../../ports/ledger.ts";
import type { IndexProgress } from "../index-progress.ts";

/** What a node does for a group's index: it writes it, or lets itself be told of what another node writes. */
export interface Role {
  /** Whether this node writes the index at this moment. */
  readonly isFollowing: boolean;
  /**
   * Assumes that ledger and store are started. Answers when the index has what was final at this moment, or when `signal` aborts. It may
   * be called again after it has failed.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Ends; what is being written is finished. */
  stop(): Promise<void>;
}

/** Waits until the index has what is final by now, or `signal` aborts. @throws BrokerError 200205. */
export async function untilCaughtUp(
  { ledger, progress }: { readonly ledger: Ledger; readonly progress: IndexProgress },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && !(await progress.waitFor(await ledger.finalBlockNumber(signal), signal)));
}
