import type { BlockRange } from "../../../domain/block-range.ts";
import { mapInChunks } from "../../../lib/chunks.ts";
import { groupBy } from "../../../lib/group-by.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { TimeSlices } from "../../../lib/time-slices.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BatchPlace, BlockRef, CommittedBatch, LedgerBlock, LedgerEntry } from "../../../ports/ledger.ts";
import type { BatchVerifier } from "./batch-verifier.ts";
import { BlockLogs, type BlockLogsOptions } from "./block-logs.ts";
import { CommittedReader } from "./committed-reader.ts";
import { LogBloom } from "../log-bloom.ts";
import { type ContractLog, logSignatures, parseLog } from "./parse-log.ts";
import { type HeldBlock, hold, type PushedBlocks } from "./pushed-blocks.ts";
import type { Header } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import type { RpcLog } from "../endpoint/rpc-log.ts";

/** Blocks below the head that are read one by one, each checked against its parent. */
export const nearBlocks = 64;
/** Upper bound on concurrent header requests. */
const requestsAtOnce = 16;
/** Upper bound on concurrent log requests: another account can make each answer as long as the limit. */
const blocksOfLogsAtOnce = 4;

/** Pause before the reader asks again for logs that headers of blocks promise, in milliseconds. Each round has at most one. */
const askAgainMs = 500;

/** The same text for each block, so that it is logged once: on chains with many logs, a bloom may promise logs that do not exist. */
const leftOut = new Error(
  "no endpoint returned logs of the registry that the block's header promises; if the index lacks events of this block, use an endpoint that can search a block's logs once it announces the block",
);

/** Blocks that were read together. */
export interface Round {
  /** The first block that was read. */
  readonly from: number;
  /** At least the blocks with entries, and the last one that was read. */
  readonly blocks: readonly LedgerBlock[];
  /** Logs of the registry in the blocks that were read; rejections of other accounts may be missing. */
  readonly logs: readonly ContractLog[];
  /** Approximate memory of the logs, in bytes. */
  readonly bytes: number;
}

export interface BlockReaderOptions extends BlockLogsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly verifier: BatchVerifier;
  /** Blocks that the embedded chain pushed; they need no request. */
  readonly pushed?: PushedBlocks;
}

/** The range to read: blocks after `after` up to `to`. A request by range asks for at most `blocksMax`. */
export interface ReadRange {
  /** Undefined to read from block 0 on. */
  readonly after: BlockRef | undefined;
  readonly to: number;
  readonly blocksMax: number;
  /** The newest known block. */
  readonly head: number;
  /** The header of a block of the range, if one is known: the read needs no request for it. */
  readonly header: Header | undefined;
  /** Aborts when nobody wants the blocks any more. */
  readonly ended: AbortSignal;
}

export class BlockReader {
  readonly #options: BlockReaderOptions;
  readonly #blockLogs: BlockLogs;
  readonly #committed: CommittedReader;
  readonly #bloom: LogBloom;
  readonly #leftOut: ReportedTrouble;
  readonly #slices: TimeSlices;
  /** Upper bound on the blocks that the next read near the head may return. */
  #atOnce = requestsAtOnce;

  constructor(options: BlockReaderOptions) {
    this.#options = options;
    this.#blockLogs = new BlockLogs(options);
    this.#slices = new TimeSlices(options.clock);
    this.#committed = new CommittedReader({ ...options, blockLogs: this.#blockLogs, slices: this.#slices });
    this.#bloom = new LogBloom(options.registry, logSignatures);
    this.#leftOut = new ReportedTrouble(options.logger, "promised logs not returned");
  }

  /** Reads blocks of a chain without reorgs. @throws RpcFailure. */
  async readFinal({ after, to, blocksMax }: ReadRange): Promise<Round> {
    const from = (after?.number ?? -1) + 1;
    const range = { from, to: Math.min(to, from + blocksMax - 1) };
    const held = this.#options.pushed?.take(range) ?? (await this.#findHeld(range));
    return held === undefined ? this.#readRange(range) : this.#readHeld(from, held);
  }

  /** Reads one block as the chain has it now, for callers that can do without it; undefined above `final`. @throws RpcFailure. */
  async readOne(number: number, final: number): Promise<LedgerBlock | undefined> {
    if (number > final) return undefined;
    const range = { from: number, to: number };
    const held = await this.#findHeld({ ...range, isOptional: true });
    const { blocks } = await (held === undefined ? this.#readRange(range) : this.#readHeld(number, held));
    return blocks.at(-1);
  }

  /** See the port. @throws RpcFailure. */
  readCommitted(places: readonly BatchPlace[], signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    return this.#committed.read(places, signal);
  }

  /**
   * Reads blocks that continue the branch of `after`; returns undefined if `after` is no longer on the chain. Far below the head, requests logs by range. Near
   * the head, requests them block by block, since a lagging endpoint would return too few logs for a range.
   * @throws RpcFailure, also if the chain changed meanwhile or endpoints disagree; then read again.
   */
  async read(range: ReadRange): Promise<Round | undefined> {
    const { after, to, blocksMax, head } = range;
    const from = (after?.number ?? -1) + 1;
    const farEnd = Math.min(to, head - nearBlocks, from + blocksMax - 1);
    if (farEnd < from || blocksMax === 1) return this.#readLinked(range);
    const round = await this.#readRange({ from, to: farEnd });
    if (after !== undefined && !(await this.isOnChain(after))) return undefined;
    return from === 0 ? this.#withFirst(round) : round;
  }

  /** Whether the chain has this block. @throws RpcFailure, also if the endpoint has no block of that number. */
  async isOnChain(block: BlockRef): Promise<boolean> {
    return (await this.#options.rpc.header(block.number)).hash === block.hash;
  }

  /** Reads several blocks, but after a failure only one, so that an unreliable endpoint suffices. Each success doubles the number, up to a maximum. */
  async #readLinked(range: ReadRange): Promise<Round | undefined> {
    const atOnce = this.#atOnce;
    this.#atOnce = 1;
    const round = await this.#readSome(range, atOnce);
    this.#atOnce = Math.min(requestsAtOnce, atOnce * 2);
    return round;
  }

  async #readSome({ after, to, header: known, ended }: ReadRange, atOnce: number): Promise<Round | undefined> {
    const from = (after?.number ?? -1) + 1;
    const numbers = Array.from({ length: Math.min(atOnce, to - from + 1) }, (_, index) => from + index);
    const headers = linked(await Promise.all(numbers.map(async (number) => this.#header(number, known))));
    const [first] = headers;
    if (after !== undefined && first !== undefined && first.parentHash !== after.hash) {
      if (await this.isOnChain(after)) throw changed(first);
      return undefined;
    }
    const logs = await this.#promisedLogs(headers, ended);
    const blocks: LedgerBlock[] = [];
    for (const [index, header] of headers.entries())
      blocks.push(toBlock(header, await this.#entries(logs[index] ?? [])));
    return { from, blocks, logs: logs.flat(), bytes: bytesOf(logs.flat()) };
  }

  /**
   * The logs of each block. A chain node may announce a block before it can search the logs of that block, and then return none. So if the header promises logs
   * and the first endpoint returns none, asks all endpoints after a pause. The first pass asks only one: a bloom filter may promise logs that do not exist, and
   * an endpoint that hangs must not delay each such block.
   */
  async #promisedLogs(headers: readonly Header[], ended: AbortSignal): Promise<readonly (readonly ContractLog[])[]> {
    const logs = await this.#logsOf(headers, false);
    const owed = headers.filter((header, index) => logs[index]?.length === 0 && this.#bloom.matches(header));
    if (owed.length > 0) await pause(this.#options.clock, askAgainMs, ended);
    const again = await this.#logsOf(owed, true);
    const missing = owed.find((_, index) => again[index]?.length === 0);
    if (missing !== undefined && !ended.aborted) this.#leftOut.failed(leftOut, { blockNumber: missing.number });
    else if (owed.length > 0) this.#leftOut.done();
    return headers.map((header, index) => again[owed.indexOf(header)] ?? logs[index] ?? []);
  }

  async #logsOf(headers: readonly Header[], isPromised: boolean): Promise<readonly (readonly ContractLog[])[]> {
    return mapInChunks(headers, blocksOfLogsAtOnce, async (header) => this.#logsOfOne(header, isPromised));
  }

  async #logsOfOne(header: Header, isPromised: boolean): Promise<readonly ContractLog[]> {
    if (!this.#bloom.mayHold(header)) return [];
    return this.#parseAll(await this.#blockLogs.read(header, isPromised));
  }

  /** Believes that a range has no logs only if no endpoint that answers returns any: one may have deleted its old logs. */
  async #readRange(range: BlockRange): Promise<Round> {
    const { rpc, registry } = this.#options;
    const filter = { address: registry, signatures: logSignatures, isPromised: true };
    const { logs: raws, end } = await rpc.logs(range, filter);
    const logs = this.#parseAll(raws);
    const blocks = await this.#blocks(range.to, logs, end);
    return { from: range.from, logs, bytes: bytesOf(logs), blocks };
  }

  /** The blocks of a range from the embedded chain; undefined for other chains. */
  async #findHeld(range: BlockRange & { readonly isOptional?: boolean }): Promise<readonly HeldBlock[] | undefined> {
    const { rpc, registry } = this.#options;
    return (await rpc.findBlocks(range))?.map((block) => hold(block, registry));
  }

  async #readHeld(from: number, held: readonly HeldBlock[]): Promise<Round> {
    const blocks: LedgerBlock[] = [];
    for (const { header, logs } of held) blocks.push(toBlock(header, await this.#entries(logs)));
    const logs = held.flatMap((block) => block.logs);
    return { from, blocks, logs, bytes: bytesOf(logs) };
  }

  /** Adds the chain's first block, since an index can always roll back to it. */
  async #withFirst(round: Round): Promise<Round> {
    if (round.blocks[0]?.number === 0) return round;
    return { ...round, blocks: [toBlock(await this.#options.rpc.header(0), []), ...round.blocks] };
  }

  #parseAll(raws: readonly RpcLog[]): readonly ContractLog[] {
    return raws.flatMap((raw) => parseLog(raw, this.#options.registry) ?? []);
  }

  /** `end` is the header of block `last`, if it is known. */
  async #blocks(last: number, logs: readonly ContractLog[], end: Header | undefined): Promise<LedgerBlock[]> {
    const groups = [...groupBy(logs, ({ blockNumber }) => blockNumber).values()];
    const headers = await mapInChunks(groups, requestsAtOnce, async ([log]) => this.#header(log.blockNumber, end));
    const blocks: LedgerBlock[] = [];
    for (const [index, header] of headers.entries()) {
      const group = groups[index] ?? [];
      if (group.some(({ blockHash }) => blockHash !== header.hash)) throw changed(header);
      const entries = await this.#entries(group);
      if (entries.length > 0 || header.number === last) blocks.push(toBlock(header, entries));
    }
    if (blocks.at(-1)?.number !== last) blocks.push(toBlock(await this.#header(last, end), []));
    return blocks;
  }

  async #header(number: number, known: Header | undefined): Promise<Header> {
    return known?.number === number ? known : this.#options.rpc.header(number);
  }

  /** Lets other work run between the verifications of two batches: anyone can fill a block with long ones. */
  async #entries(logs: readonly ContractLog[]): Promise<LedgerEntry[]> {
    const entries: LedgerEntry[] = [];
    for (const log of logs) {
      await this.#slices.pause(); // Also before the first log: those of another block may have used up the slice.
      const entry = this.#entry(log);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  #entry(log: ContractLog): LedgerEntry | undefined {
    const { kind, address, transactionHash, logIndex } = log;
    if (kind === "batch-rejected" || kind === "open-rejected") return undefined;
    if (kind === "topic-opened")
      return { kind, name: log.name, sender: log.sender, address, transactionHash, logIndex };
    if (kind !== "events-published") return { kind, address, transactionHash, logIndex };
    const { firstSequence, count, events, sender: publisher } = log;
    const wrong = this.#options.verifier.fault(log);
    if (wrong === undefined)
      return { kind: "events-committed", publisher, firstSequence, count, events, address, transactionHash, logIndex };
    return { kind: "events-malformed", publisher, firstSequence, count, ...wrong, address, transactionHash, logIndex };
  }
}

/** The headers before the first one that does not link to its predecessor, because the chain changed meanwhile or endpoints disagree. */
function linked(headers: readonly Header[]): readonly Header[] {
  const broken = headers.findIndex((header, index) => index > 0 && header.parentHash !== headers[index - 1]?.hash);
  return broken === -1 ? headers : headers.slice(0, broken);
}

function changed(header: Header): RpcFailure {
  return new RpcFailure("refused", `block ${header.number} changed while it was read`, { cause: header.hash });
}

/** Memory of a log without its events, in bytes, from a heap snapshot. It is most of the memory of a batch with one event. */
const logBytes = 768;

function bytesOf(logs: readonly ContractLog[]): number {
  return logs.reduce((sum, log) => sum + logBytes + (log.kind === "events-published" ? log.events.length : 0), 0);
}

function toBlock(header: Header, entries: readonly LedgerEntry[]): LedgerBlock {
  const { number, hash, parentHash, timestamp } = header;
  return { number, hash, parentHash, timestamp, entries };
}
