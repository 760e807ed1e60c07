import { type Hex, toQuantity } from "@stele/eth/node";
import { parseTransaction } from "viem";
import type { Hash } from "../../../domain/topic.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { RpcCall } from "../endpoint/connection.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";
import { connectionLost, connectionRefused } from "./intercepted-provider.ts";
import { hashOf } from "./writer-world.ts";

/** A transaction of the one account that the chain node knows. */
interface PooledTransaction {
  readonly hash: Hash;
  readonly nonce: number;
  readonly data: Hex;
  readonly price: bigint;
  readonly gas: number;
}

interface MinedTransaction extends PooledTransaction {
  /** Whether the transaction ran out of gas. */
  readonly isReverted: boolean;
}

interface ForkingBlock {
  readonly hash: Hash;
  readonly transactions: readonly MinedTransaction[];
}

/** How the chain node answers: not at all, with delays, with answers that get lost, or with errors of its own. */
export type NodeMood = "well" | "away" | "unreached" | "lossy" | "slow" | "failing";

const slowMsMax = 3000;
/** Price of a replacement, in percent of the old price. */
const bumpPercent = 110n;

/** A chain node with a pool and a chain that the test extends and forks. All transactions are of one account. */
export class ForkingNode implements EvmProvider {
  readonly blocks: ForkingBlock[] = [{ hash: hashAt(0), transactions: [] }];
  readonly pool = new Map<number, PooledTransaction>();
  mood: NodeMood = "well";
  /** Why the chain node refuses every new transaction; undefined if it does not. */
  refusal: string | undefined;
  /** The highest price that the account can pay; undefined for no bound. */
  priceMax: bigint | undefined;
  /** Whether the chain node refuses a nonce before its turn. */
  isStrict = false;
  /** Gas that a transaction with new data needs. */
  gasNeeded = 0;
  /** Whether the chain node refuses transactions with less gas than they need; otherwise they run out of gas. */
  checksGas = false;
  /** Data of transactions at which the chain node always fails. */
  readonly failsAt = new Set<Hex>();
  #made = 0;
  /** Gas that a transaction needs, by its data. */
  readonly #needs = new Map<Hex, number>();
  readonly #options: { readonly account: string; readonly clock: Clock; readonly random: () => number };

  constructor(options: { readonly account: string; readonly clock: Clock; readonly random: () => number }) {
    this.#options = options;
  }

  get head(): number {
    return this.blocks.length - 1;
  }

  /** Makes a block of up to `transactionsMax` transactions of the pool, in the order of their nonces. */
  mine(transactionsMax: number): void {
    const transactions: MinedTransaction[] = [];
    for (let nonce = this.#count(this.head); transactions.length < transactionsMax; nonce += 1) {
      const next = this.pool.get(nonce);
      if (next === undefined) break;
      transactions.push({ ...next, isReverted: this.#isShort(next) });
      this.pool.delete(nonce);
    }
    this.#made += 1;
    this.blocks.push({ hash: hashAt(this.#made), transactions });
  }

  /** Removes the newest `blocks` blocks, and forgets their transactions. */
  forget(blocks: number): void {
    this.blocks.splice(Math.max(1, this.blocks.length - blocks));
  }

  hash(blockNumber: number): Hash | undefined {
    return this.blocks[blockNumber]?.hash;
  }

  async request({ method, params = [] }: RpcCall): Promise<unknown> {
    const { mood } = this;
    if (mood === "slow") await this.#delay();
    if (mood === "away") throw connectionLost();
    if (mood === "unreached") throw connectionRefused();
    const answer = this.#answer(method, params as readonly [string, unknown]); // The ledger sends these.
    if (mood === "slow") await this.#delay();
    if (mood === "lossy" && this.#options.random() < 0.4) throw connectionLost();
    if (mood === "failing" && this.#options.random() < 0.4) throw internalError();
    return answer;
  }

  #delay(): Promise<void> {
    const { clock, random } = this.#options;
    return new Promise((resolve) => void clock.after(Math.floor(random() * slowMsMax), resolve));
  }

  #answer(method: string, [first, tag]: readonly [string, unknown]): unknown {
    if (method === "eth_getTransactionReceipt") return this.#receipt(first);
    if (method === "eth_getTransactionCount") return toQuantity(this.#countAt(tag));
    if (method === "eth_getBlockByNumber") return this.#block(Number(first));
    if (method === "eth_sendRawTransaction") return this.#take(parse(first as Hex)); // A raw transaction.
    if (method === "eth_gasPrice") return "0x3b9aca00";
    if (method === "eth_estimateGas") return toQuantity(this.#needOf(first as Hex)); // The transaction's data.
    return method === "eth_getTransactionByHash" ? null : "0x0";
  }

  #receipt(hash: string): unknown {
    const at = this.blocks.findIndex(({ transactions }) => transactions.some((one) => one.hash === hash));
    const transaction = this.blocks[at]?.transactions.find((one) => one.hash === hash);
    if (transaction === undefined) return null;
    const { isReverted, gas } = transaction;
    const outcome = { status: isReverted ? "0x0" : "0x1", gasUsed: toQuantity(isReverted ? gas : 21_000) };
    return { blockHash: this.hash(at), blockNumber: toQuantity(at), ...outcome, logs: [], contractAddress: null };
  }

  #block(number: number): unknown {
    const block = this.blocks[number];
    const from = this.#options.account;
    const transactions = block?.transactions.map(({ hash, nonce }) => ({ hash, from, nonce: toQuantity(nonce) }));
    return block === undefined ? null : { number: toQuantity(number), hash: block.hash, transactions };
  }

  #count(upTo: number): number {
    return this.blocks.slice(0, upTo + 1).reduce((sum, { transactions }) => sum + transactions.length, 0);
  }

  #countAt(tag: unknown): number {
    if (tag === "pending") return this.#nextNonce();
    const upTo = tag === "latest" ? this.head : Number(tag);
    if (upTo > this.head) throw refused("header not found");
    return this.#count(upTo);
  }

  #nextNonce(): number {
    let next = this.#count(this.head);
    while (this.pool.has(next)) next += 1;
    return next;
  }

  #isShort({ data, gas }: PooledTransaction): boolean {
    return data !== "0x" && gas < this.#needOf(data);
  }

  #needOf(data: Hex): number {
    const need = this.#needs.get(data) ?? this.gasNeeded;
    this.#needs.set(data, need);
    return need;
  }

  #take(transaction: PooledTransaction): Hash {
    const { hash, nonce, price } = transaction;
    const old = this.pool.get(nonce);
    if (old?.hash === hash || this.#receipt(hash) !== null) throw refused("already known");
    if (nonce < this.#count(this.head)) throw refused("nonce too low");
    if (this.failsAt.has(transaction.data)) throw internalError();
    if (this.checksGas && this.#isShort(transaction)) throw refused("intrinsic gas too low");
    if (this.refusal !== undefined) throw refused(this.refusal);
    if (this.priceMax !== undefined && price > this.priceMax)
      throw refused("insufficient funds for gas * price + value");
    if (this.isStrict && nonce > this.#nextNonce()) throw refused("nonce too high");
    if (old !== undefined && price * 100n < old.price * bumpPercent)
      throw refused("replacement transaction underpriced");
    this.pool.set(nonce, transaction);
    return hash;
  }
}

function hashAt(seed: number): Hash {
  return `0x${seed.toString(16).padStart(64, "0")}`;
}

function parse(raw: Hex): PooledTransaction {
  const { nonce = 0, data = "0x", gasPrice = 0n, gas = 0n } = parseTransaction(raw);
  return { hash: hashOf(raw), nonce, data, price: gasPrice, gas: Number(gas) };
}

function refused(message: string): Error {
  return Object.assign(new Error(message), { code: -32_000 });
}

function internalError(): Error {
  return Object.assign(new Error("Internal error"), { code: -32_603 });
}
