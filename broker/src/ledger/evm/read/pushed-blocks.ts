import { toHex } from "@stele/eth/node";
import type { BlockRange } from "../../../domain/block-range.ts";
import type { Address } from "../../../domain/topic.ts";
import type { Header } from "../endpoint/rpc.ts";
import { type ContractLog, parseRawLog } from "./parse-log.ts";
import type { PushedBlock } from "./pushed-block.ts";

/** A block from the embedded chain, in the reader's format. */
export interface HeldBlock {
  readonly header: Header;
  /** The logs of the registry. */
  readonly logs: readonly ContractLog[];
  /** Data of all its logs, in bytes: the registry's logs may keep the memory of the others. */
  readonly bytes: number;
}

/** Upper bound on the pushed blocks that wait to be read; older ones are requested. */
const pushedBlocksMax = 64;
/** Upper bound on the data in the logs of pushed blocks that wait to be read, in bytes; the newest block is always kept. */
const pushedBytesMax = 67_108_864;

/** Blocks that the embedded chain pushed and nobody has read yet, in order and without gaps. */
export class PushedBlocks {
  readonly #registry: Address;
  readonly #blocks = new Map<number, HeldBlock>();
  #bytes = 0;

  constructor(registry: Address) {
    this.#registry = registry;
  }

  add(block: PushedBlock): Header {
    const held = hold(block, this.#registry);
    const { header } = held;
    this.#blocks.set(header.number, held);
    this.#bytes += held.bytes;
    for (const oldest of this.#blocks.keys()) {
      if (oldest === header.number || !this.#isTooMuch()) break;
      this.#delete(oldest);
    }
    return header;
  }

  /** The consecutive blocks of a range; undefined if its first block is missing. Removes all blocks up to its end. */
  take({ from, to }: BlockRange): readonly HeldBlock[] | undefined {
    const taken: HeldBlock[] = [];
    for (const [number, block] of this.#blocks) {
      if (number > to) break;
      this.#delete(number);
      if (number === from + taken.length) taken.push(block);
    }
    return taken.length === 0 ? undefined : taken;
  }

  #isTooMuch(): boolean {
    return this.#blocks.size > pushedBlocksMax || this.#bytes > pushedBytesMax;
  }

  #delete(number: number): void {
    this.#bytes -= this.#blocks.get(number)?.bytes ?? 0;
    this.#blocks.delete(number);
  }
}

/** Converts a block to the reader's format. */
export function hold(block: PushedBlock, registry: Address): HeldBlock {
  const header = toHeader(block);
  const logs: ContractLog[] = [];
  let bytes = 0;
  for (const transaction of block.transactions) {
    const source = {
      registry,
      blockNumber: header.number,
      blockHash: header.hash,
      transactionHash: toHex(transaction.hash),
    };
    for (const [index, log] of transaction.logs.entries()) {
      const parsed = parseRawLog(log, source, transaction.firstLogIndex + index);
      if (parsed !== undefined) logs.push(parsed);
      bytes += log.data.length;
    }
  }
  return { header, logs, bytes };
}

function toHeader({ hash, header }: PushedBlock): Header {
  return {
    number: Number(header.number),
    hash: toHex(hash),
    parentHash: toHex(header.parentHash),
    timestamp: Number(header.timestamp) * 1000,
    baseFeePerGas: header.baseFeePerGas,
    gasLimit: Number(header.gasLimit),
    logsBloom: undefined,
    transactionsRoot: undefined,
  };
}
