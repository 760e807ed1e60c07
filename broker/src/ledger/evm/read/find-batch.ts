import type { BlockRange } from "../../../domain/block-range.ts";
import type { Address } from "../../../domain/topic.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { BatchStart } from "../../../ports/ledger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { publishedSignature } from "./parse-log.ts";
import { RangeSize } from "./range-size.ts";

export interface BatchSearch {
  readonly rpc: Rpc;
  readonly registry: Address;
  readonly batch: BatchStart;
  readonly signal: AbortSignal;
}

/**
 * See the port's findBatch. Begins at the newest block, since most gaps are near it, and asks all endpoints until one returns the batch. @throws RpcFailure.
 */
export async function findBatch(
  { from, to }: BlockRange,
  { rpc, registry, batch, signal }: BatchSearch,
): Promise<number | undefined> {
  const filter = { address: registry, signatures: [publishedSignature], batch, isPromised: true };
  const size = new RangeSize();
  let most = Number.POSITIVE_INFINITY; // Blocks of one request. Never grows again: each request for too many blocks may take the whole timeout.
  let end = to;
  while (end >= from && !signal.aborted) {
    const part = { from: Math.max(from, end - Math.min(size.blocks, most) + 1), to: end };
    try {
      const answer = await untilAborted(rpc.logs(part, filter), signal);
      const [log] = answer?.logs ?? [];
      if (log !== undefined) return Number(log.blockNumber);
      end = part.from - 1;
      size.onAnswer(0);
    } catch (error) {
      // The endpoint may refuse this many blocks with a message that we do not know, or be too slow for them.
      if (!(error instanceof RpcFailure) || error.kind === "unreached" || part.from === part.to) throw error;
      most = (part.to - part.from + 1) >> 1;
    }
  }
  return undefined;
}
