import { backoffDelayMs } from "../../../lib/backoff.ts";
import { pause } from "../../../lib/pause.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";

/** Attempts to find a block that must exist. The pauses between them add up to 2.25 s. */
const attemptsMax = 8;
const pauses = { delayMsMin: 50, delayMsMax: 500 };

export interface FindBlockOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  /** The newest known block. */
  readonly latest: () => number;
  readonly signal: AbortSignal;
}

/**
 * The header of a block; undefined if the chain is not that high, or if the endpoint lacks the block at all attempts. Several chain nodes may share one
 * address: one that lacks a block which another announced gets time to catch up. @throws RpcFailure, also if aborted.
 */
export async function findBlock(blockNumber: number, options: FindBlockOptions): Promise<Header | undefined> {
  const { rpc, clock, latest, signal } = options;
  for (let attempt = 1; ; attempt += 1) {
    if (signal.aborted)
      throw new RpcFailure("unreached", "aborted before the block was found", { cause: signal.reason });
    const header = await rpc.findHeader(blockNumber);
    if (header !== undefined || latest() < blockNumber || attempt === attemptsMax) return header;
    await pause(clock, backoffDelayMs(attempt, { ...pauses, fraction: 0 }), signal);
  }
}
