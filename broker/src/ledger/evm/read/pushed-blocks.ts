import { type Hex, isSameBytes, toBuffer, toHex } from "@stele/eth/node";
import type { Hash } from "../../../domain/topic.ts";
import type { Header } from "../endpoint/rpc.ts";
import type { RawLog } from "./parse-log.ts";
import type { PushedBlock } from "./pushed-block.ts";

/** A block that the chain handed over, in the reader's format. */
export interface HeldBlock {
  readonly header: Header;
  readonly logs: readonly RawLog[];
  /** Bytes of the data of its logs. */
  readonly bytes: number;
}

/** Upper bound on the blocks that wait to be read; older ones are requested. */
const pushedBlocksMax = 64;
/** Upper bound on the data in their logs, in bytes; the newest block is always kept. */
const pushedBytesMax = 67_108_864;

/** Blocks that the chain handed over and nobody has read yet, in order and without a gap. */
export class PushedBlocks {
  readonly #blocks = new Map<number, HeldBlock>();
  #bytes = 0;

  /** Keeps a block and returns its header. */
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

  /** The consecutive blocks of a range; undefined if its first block is missing. Removes all blocks up to its end. */
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

/** Converts a block to the reader's format. */
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
  const texts = new RepeatedTexts();
  return transactions.flatMap((transaction) => {
    const transactionHash: Hash = toHex(transaction.hash);
    return transaction.logs.map(({ address, topics, data }, index) => ({
      address: texts.at(0, address),
      topics: topics.map((topic, place) => texts.at(1 + place, topic)),
      data: toBuffer(data),
      blockNumber: number,
      blockHash: hash,
      transactionHash,
      logIndex: transaction.firstLogIndex + index,
    }));
  });
}

/** Texts of bytes that mostly are the same from log to log: the registry, the kind of the log, the publisher. */
class RepeatedTexts {
  readonly #last: { readonly bytes: Uint8Array; readonly text: Hex }[] = [];

  /** The text of what a log has in one of its places. */
  at(place: number, bytes: Uint8Array): Hex {
    const last = this.#last[place];
    if (last !== undefined && isSameBytes(last.bytes, bytes)) return last.text;
    const text = toHex(bytes);
    this.#last[place] = { bytes, text };
    return text;
  }
}
