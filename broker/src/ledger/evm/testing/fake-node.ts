import { fromHex, type Hex, keccak256, toHex, toQuantity } from "@stele/eth/node";
import type { Address, Hash } from "../../../domain/topic.ts";
import type { RpcCall } from "../endpoint/connection.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";
import { logSignatures } from "../read/parse-log.ts";

const closedSignature = logSignatures[2] ?? "0x";
const bloomBytes = 256;

interface FakeBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
  readonly marks: readonly number[];
}

/**
 * A fake chain, which answers like several chain nodes, some of which lag. A block has one log for each of its marks (numbers): the log closes the topic whose
 * address is that number.
 */
export class FakeNode implements EvmProvider {
  readonly registry: Address;
  /**
   * How many blocks the chain node that answers a method lags. One chain node answers all requests of a `requestAll`: the largest lag of their methods counts.
   */
  behind: (method: string) => number = () => 0;
  #blocks: FakeBlock[] = [];
  #made: number;

  /** `made` tells the hashes of two chains apart. */
  constructor(registry: Address, made = 0) {
    this.registry = registry;
    this.#made = made;
    this.seal([]);
  }

  get head(): number {
    return this.#blocks.length - 1;
  }

  get genesisHash(): Hash {
    return this.#blocks[0]?.hash ?? "0x";
  }

  get marks(): readonly number[] {
    return this.#blocks.flatMap(({ marks }) => marks);
  }

  seal(marks: readonly number[]): void {
    this.#made += 1;
    const number = this.#blocks.length;
    const parentHash = this.#blocks.at(-1)?.hash ?? toHex(new Uint8Array(32));
    const hash = toHex(keccak256(Buffer.from(`${parentHash} ${number} ${this.#made}`)));
    this.#blocks.push({ number, hash, parentHash, marks });
  }

  /** Removes the blocks after `to`; returns their marks. */
  cutBack(to: number): readonly (readonly number[])[] {
    return this.#blocks.splice(to + 1).map(({ marks }) => marks);
  }

  async request(request: RpcCall): Promise<unknown> {
    return this.#answer(request, this.behind(request.method));
  }

  async requestAll(requests: readonly RpcCall[]): Promise<readonly unknown[]> {
    const behind = Math.max(...requests.map(({ method }) => this.behind(method)));
    return requests.map((request) => this.#answer(request, behind));
  }

  #answer({ method, params = [] }: RpcCall, behind: number): unknown {
    const height = Math.max(0, this.head - behind);
    const [first] = params as readonly [unknown]; // The ledger sends these.
    if (method === "eth_getBlockByNumber") {
      const number = first === "latest" ? height : Number(first);
      const block = number > height ? undefined : this.#blocks[number];
      return block === undefined ? null : this.#headerOf(block);
    }
    if (method !== "eth_getLogs") throw Object.assign(new Error(`no method ${method}`), { code: -32601 });
    const filter = first as { blockHash?: Hash; fromBlock?: Hex; toBlock?: Hex; topics: [Hex[]] }; // The ledger sends these fields.
    if (!filter.topics[0].includes(closedSignature)) return [];
    const seen = this.#blocks.slice(0, height + 1);
    if (filter.blockHash !== undefined) {
      const block = seen.find(({ hash }) => hash === filter.blockHash);
      if (block === undefined) throw Object.assign(new Error("unknown block"), { code: -32000 });
      return this.#logsOf(block);
    }
    return seen.slice(Number(filter.fromBlock), Number(filter.toBlock) + 1).flatMap((block) => this.#logsOf(block));
  }

  #headerOf({ number, hash, parentHash, marks }: FakeBlock): unknown {
    const logsBloom = bloomOf(marks.length === 0 ? [] : [closedSignature, this.registry]);
    const transactionsRoot = marks.length === 0 ? noTransactions : hash;
    const fixed = { timestamp: "0x1", gasLimit: "0x1000000", transactionsRoot, logsBloom };
    return { number: toQuantity(number), hash, parentHash, ...fixed };
  }

  #logsOf({ number, hash, marks }: FakeBlock): readonly unknown[] {
    return marks.map((mark, index) => ({
      address: this.registry,
      topics: [closedSignature, `0x${mark.toString(16).padStart(64, "0")}`],
      data: "0x",
      blockNumber: toQuantity(number),
      blockHash: hash,
      transactionHash: hash,
      logIndex: toQuantity(index),
    }));
  }
}

/** The transactionsRoot of a block without transactions. */
const noTransactions = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

/** The bloom of the Yellow Paper, which counts bits from the right. */
function bloomOf(items: readonly Hex[]): Hex {
  let bloom = 0n;
  for (const item of items) {
    const hash = keccak256(fromHex(item));
    for (const at of [0, 2, 4]) bloom |= 1n << BigInt((((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 2047);
  }
  return `0x${bloom.toString(16).padStart(2 * bloomBytes, "0")}`;
}
