import type { Hash } from "../../../domain/topic.ts";
import { toHex } from "../hex.ts";
import type { RawLog } from "./parse-log.ts";
import type { PushedBlock } from "./pushed-block.ts";
import type { Header } from "../endpoint/rpc.ts";

/** A block that was handed over, ready to be read. */
export interface HeldBlock {
  readonly header: Header;
  readonly logs: readonly RawLog[];
  /** Of the data of its logs. */
  readonly bytes: number;
}

/** Most blocks that wait to be read; of older ones the logs are asked for. */
const pushedBlocksMax = 64;
/** Most data in the logs of those blocks, in bytes; the newest is kept in any case. */
const pushedBytesMax = 67_108_864;

/** Blocks that the chain handed over and that were not read yet, in order and without a gap. */
export class PushedBlocks {
  readonly #blocks = new Map<number, HeldBlock>();
  #bytes = 0;

  /** Keeps a block and answers its header. */
  add(block: PushedBlock): Header {
    const held = hold(block);
    const { header } = held;
    this.#blocks.set(header.number, held);
    this.#bytes += held.bytes;
    for (const oldest of this.#blocks.keys()) {
      if (oldest === header.number || !this.#isTooMuch()) break;
      this.#delete(oldest);
    }
    return header;
  }

  /** The blocks from one number to another, as far as they follow each other; undefined when the first of them is not here. No block up to there is kept. */
  take({ from, to }: { readonly from: number; readonly to: number }): readonly HeldBlock[] | undefined {
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

/** Makes a block ready to be read. */
export function hold(block: PushedBlock): HeldBlock {
  const header = toHeader(block);
  const logs = toLogs(block, header);
  return { header, logs, bytes: logs.reduce((sum, { data }) => sum + data.length, 0) };
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

function toLogs({ transactions }: PushedBlock, { number, hash }: Header): RawLog[] {
  return transactions.flatMap((transaction) => {
    const transactionHash: Hash = toHex(transaction.hash);
    return transaction.logs.map(({ address, topics, data }, index) => ({
      address: toHex(address),
      topics: topics.map((topic) => toHex(topic)),
      data: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
      blockNumber: number,
      blockHash: hash,
      transactionHash,
      logIndex: transaction.firstLogIndex + index,
    }));
  });
}
