import type { Address } from "../../domain/topic.ts";
import type { LedgerBlock, LedgerEntry } from "../../ports/ledger.ts";
import type { BatchVerifier } from "./batch-verifier.ts";
import { type ContractLog, logSignatures, parseLog } from "./parse-log.ts";
import { type Header, type Rpc, type RpcLog } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";
import type { TopicSet } from "./topic-set.ts";

/** Blocks read at once. */
export interface Round {
  /** The first block that was looked at. */
  readonly from: number;
  /** Blocks with entries, and the last one looked at. */
  readonly blocks: readonly LedgerBlock[];
  /** All logs of our contracts in them. */
  readonly logs: readonly ContractLog[];
  /** Bytes of encoded events in them. */
  readonly bytes: number;
}

export interface BlockReaderOptions {
  readonly rpc: Rpc;
  readonly registry: Address;
  readonly topics: TopicSet;
  readonly verifier: BatchVerifier;
}

/** Turns ranges of blocks into what happened in them. */
export class BlockReader {
  readonly #options: BlockReaderOptions;

  constructor(options: BlockReaderOptions) {
    this.#options = options;
  }

  /**
   * Reads blocks `from` to `to`, both included. `heads` are headers that are known already.
   * @throws RpcFailure; also when the chain changed its mind while it was read, and then it is to be read again.
   */
  async read(
    range: { readonly from: number; readonly to: number },
    heads: ReadonlyMap<number, Header>,
  ): Promise<Round> {
    const rawLogs = await this.#options.rpc.logs(range, logSignatures);
    const logs: ContractLog[] = [];
    let bytes = 0;
    for (const raw of rawLogs) {
      const log = await this.#parse(raw);
      if (log === undefined) continue;
      logs.push(log);
      if (log.kind === "events-published") bytes += log.events.length;
    }
    return { from: range.from, logs, bytes, blocks: await this.#blocks(range.to, logs, heads) };
  }

  async #parse(raw: RpcLog): Promise<ContractLog | undefined> {
    const { registry, topics } = this.#options;
    const log = parseLog(raw, registry);
    if (log?.kind === "topic-opened") topics.add(log.address);
    if (log?.kind !== "events-published") return log;
    const isTopic = topics.has(log.address);
    return (typeof isTopic === "boolean" ? isTopic : await isTopic) ? log : undefined;
  }

  async #blocks(
    last: number,
    logs: readonly ContractLog[],
    heads: ReadonlyMap<number, Header>,
  ): Promise<LedgerBlock[]> {
    const blocks: LedgerBlock[] = [];
    for (const group of groupByBlock(logs)) {
      const [first] = group;
      if (first === undefined) continue;
      const header = await this.#header(first.blockNumber, heads);
      if (header.hash !== first.blockHash) {
        throw new RpcFailure("refused", `block ${header.number} changed while it was read`, { cause: header.hash });
      }
      const entries = group.flatMap((log) => this.#entry(log) ?? []);
      if (entries.length > 0 || header.number === last) blocks.push(toBlock(header, entries));
    }
    if (blocks.at(-1)?.number !== last) blocks.push(toBlock(await this.#header(last, heads), []));
    return blocks;
  }

  async #header(number: number, heads: ReadonlyMap<number, Header>): Promise<Header> {
    return heads.get(number) ?? (await this.#options.rpc.header(number));
  }

  #entry(log: ContractLog): LedgerEntry | undefined {
    const { kind, address, transactionHash, logIndex } = log;
    const place = { address, transactionHash, logIndex };
    if (kind === "batch-rejected") return undefined;
    if (kind === "topic-opened") return { kind, name: log.name, sender: log.sender, ...place };
    if (kind !== "events-published") return { kind, ...place };
    const { firstSequence, count, events } = log;
    const wrong = this.#options.verifier.fault(log);
    if (wrong !== undefined) return { kind: "events-malformed", firstSequence, count, ...wrong, ...place };
    return { kind: "events-committed", firstSequence, count, events, ...place };
  }
}

function toBlock(header: Header, entries: readonly LedgerEntry[]): LedgerBlock {
  const { number, hash, parentHash, timestamp } = header;
  return { number, hash, parentHash, timestamp, entries };
}

function groupByBlock(logs: readonly ContractLog[]): ContractLog[][] {
  const groups: ContractLog[][] = [];
  for (const log of logs) {
    const group = groups.at(-1);
    if (group?.[0]?.blockNumber === log.blockNumber) group.push(log);
    else groups.push([log]);
  }
  return groups;
}
