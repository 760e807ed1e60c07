import type { BlockRange } from "../../../domain/block-range.ts";
import type { Address } from "../../../domain/topic.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { BatchStart } from "../../../ports/ledger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { publishedSignature } from "./parse-log.ts";
import type { RangeSize } from "./range-size.ts";

export interface BatchSearch {
  readonly rpc: Rpc;
  readonly registry: Address;
  readonly batch: BatchStart;
  /** The blocks of one request: what the endpoint answered to earlier searches. */
  readonly size: RangeSize;
  readonly signal: AbortSignal;
}

/** See the port's findBatch. Begins at the newest block, near which most gaps are, and asks all endpoints until one returns the batch. @throws RpcFailure. */
export async function findBatch(
  { from, to }: BlockRange,
  { rpc, registry, batch, size, signal }: BatchSearch,
): Promise<number | undefined> {
  const filter = { address: registry, signatures: [publishedSignature], batch, isPromised: true };
  let end = to;
  let blocksMax = Number.POSITIVE_INFINITY;
  while (end >= from && !signal.aborted) {
    const blocks = Math.min(size.blocks, blocksMax);
    const part = { from: Math.max(from, end - blocks + 1), to: end };
    try {
      const answer = await untilAborted(rpc.logs(part, filter), signal);
      const [log] = answer?.logs ?? [];
      if (log !== undefined) return Number(log.blockNumber);
      end = part.from - 1;
      size.onAnswer(0);
    } catch (error) {
      if (!(error instanceof RpcFailure) || error.kind === "unreached" || blocks === 1) throw error;
      if (error.kind === "range-refused") size.onRefusal();
      else size.onLost();
      blocksMax = blocks >> 1; // The endpoint may refuse so many in words that we do not know, or be too slow for them.
    }
  }
  return undefined;
}
