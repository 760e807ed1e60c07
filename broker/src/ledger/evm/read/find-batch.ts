import type { Address } from "../../../domain/topic.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { BatchStart } from "../../../ports/ledger.ts";
import type { BlockRange, Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { publishedSignature } from "./parse-log.ts";

export interface BatchSearch {
  readonly rpc: Rpc;
  readonly registry: Address;
  readonly batch: BatchStart;
  readonly signal: AbortSignal;
}

/** See the port's findBatch. Asks for halves of a range that the endpoint refuses. @throws RpcFailure. */
export async function findBatch(range: BlockRange, search: BatchSearch): Promise<number | undefined> {
  const { from, to } = range;
  const { rpc, registry, batch, signal } = search;
  if (from > to || signal.aborted) return undefined;
  try {
    const filter = { address: registry, signatures: [publishedSignature], batch };
    const answer = await untilAborted(rpc.logs(range, filter), signal);
    const [log] = answer?.logs ?? [];
    return log && Number(log.blockNumber);
  } catch (error) {
    if (from === to || !(error instanceof RpcFailure) || error.kind === "unreached") throw error;
    const middle = (from + to) >>> 1; // Most gaps are near the head.
    return (await findBatch({ from: middle + 1, to }, search)) ?? findBatch({ from, to: middle }, search);
  }
}
