import type { BlockRange } from "../../../domain/block-range.ts";
import type { Address } from "../../../domain/topic.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { Pauses } from "../../../lib/time-slices.ts";
import type { BatchPlace, CommittedBatch } from "../../../ports/ledger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { findFault } from "./batch-verifier.ts";
import type { BlockLogs } from "./block-logs.ts";
import { type ContractLog, parseLog, publishedSignature } from "./parse-log.ts";
import { hold } from "./pushed-blocks.ts";

/** Upper bound on the blocks without a wanted batch between two batches that share a request. */
const gapBlocksMax = 15;
/** Upper bound on the blocks of one request for batches. */
const rangeBlocksMax = 64;

export interface CommittedReaderOptions {
  readonly rpc: Rpc;
  readonly registry: Address;
  readonly blockLogs: BlockLogs;
  /** Lets other work run between the verifications of two batches. */
  readonly slices: Pauses;
}

/** Reads batches of known places again, with at most one header per request. */
export class CommittedReader {
  readonly #options: CommittedReaderOptions;

  constructor(options: CommittedReaderOptions) {
    this.#options = options;
  }

  /** See the port's readCommitted. @throws RpcFailure if reading fails before the first batch. */
  async read(places: readonly BatchPlace[], signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    const wanted = new Set(places.map(keyOf));
    const found: CommittedBatch[] = [];
    try {
      for await (const log of this.#readAll(places, signal)) {
        if (signal.aborted) break;
        if (!wanted.has(keyOf(log))) continue;
        await this.#options.slices.pause();
        const batch = this.#toBatch(log);
        if (batch !== undefined) found.push(batch);
      }
    } catch (error) {
      if (found.length === 0) throw error;
    }
    return found;
  }

  async *#readAll(places: readonly BatchPlace[], signal: AbortSignal): AsyncGenerator<ContractLog> {
    for (const range of rangesOf(places)) yield* this.#readLogs(range, signal);
  }

  /** Reads a range in halves if the chain does not return the whole. */
  async *#readLogs(range: BlockRange, signal: AbortSignal): AsyncGenerator<ContractLog> {
    if (signal.aborted) return;
    try {
      yield* (await untilAborted(this.#readRange(range), signal)) ?? [];
    } catch (error) {
      if (range.from === range.to || !(error instanceof RpcFailure) || error.kind === "unreached") throw error;
      const middle = (range.from + range.to) >>> 1;
      yield* this.#readLogs({ from: range.from, to: middle }, signal);
      yield* this.#readLogs({ from: middle + 1, to: range.to }, signal);
    }
  }

  /** The embedded chain returns a part of its blocks at a time. */
  async #readRange(range: BlockRange): Promise<readonly ContractLog[]> {
    const { rpc, registry } = this.#options;
    const { from, to } = range;
    const logs: ContractLog[] = [];
    for (let next = from; next <= to; ) {
      const blocks = await rpc.findBlocks({ from: next, to, isOptional: true });
      if (blocks === undefined) return this.#ask(range);
      if (blocks.length === 0) return logs;
      for (const block of blocks) for (const log of hold(block, registry).logs) logs.push(log);
      next += blocks.length;
    }
    return logs;
  }

  /** The blocks have logs: if an endpoint returns none, it may have deleted them. */
  async #ask({ from, to }: BlockRange): Promise<readonly ContractLog[]> {
    const { rpc, registry, blockLogs } = this.#options;
    const filter = { address: registry, signatures: [publishedSignature], isPromised: true };
    const raws =
      from === to ? await blockLogs.read(await rpc.header(from), true) : (await rpc.logs({ from, to }, filter)).logs;
    return raws.flatMap((raw) => parseLog(raw, registry) ?? []);
  }

  /** Applies no event rules: the batch was indexed, perhaps under settings that allowed more. */
  #toBatch(log: ContractLog): CommittedBatch | undefined {
    if (log.kind !== "events-published" || findFault(log, undefined) !== undefined) return undefined;
    const { address, transactionHash, logIndex, blockNumber, firstSequence, count, events, sender: publisher } = log;
    const place = { address, transactionHash, logIndex, blockNumber };
    return { kind: "events-committed", publisher, firstSequence, count, events, ...place };
  }
}

function keyOf({ blockNumber, logIndex }: BatchPlace): string {
  return `${blockNumber} ${logIndex}`;
}

function rangesOf(places: readonly BatchPlace[]): readonly BlockRange[] {
  const ranges: { from: number; to: number }[] = [];
  for (const { blockNumber } of places) {
    const last = ranges.at(-1);
    const isNear = last !== undefined && blockNumber - last.to <= gapBlocksMax + 1;
    if (isNear && blockNumber - last.from < rangeBlocksMax) last.to = blockNumber;
    else ranges.push({ from: blockNumber, to: blockNumber });
  }
  return ranges;
}
