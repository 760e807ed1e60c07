import { toHex } from "@stele/eth/node";
import type { Transaction } from "../blocks/transaction.ts";
import {
  POOL_BYTES_MAX,
  POOL_GAP_TRANSACTIONS_MAX,
  POOL_REPLACEMENT_PERCENT,
  POOL_TRANSACTIONS_MAX,
} from "../limits.ts";
import { serverError } from "../rpc-error.ts";
import type { AdmittedTransaction } from "./admit.ts";

/** The nonce that the newest state has for an address given as hex. */
export type NonceReader = (sender: string) => bigint;

/** Signed transactions that wait for a block: in order of arrival, and per sender in order of nonce. */
export class Pool {
  readonly #byHash = new Map<string, AdmittedTransaction>();
  readonly #bySender = new Map<string, Map<bigint, AdmittedTransaction>>();
  readonly #readNonce: NonceReader;
  #bytes = 0;

  constructor(readNonce: NonceReader) {
    this.#readNonce = readNonce;
  }

  get size(): number {
    return this.#byHash.size;
  }

  find(hash: string): AdmittedTransaction | undefined {
    return this.#byHash.get(hash);
  }

  /** The sender's nonce in the newest state, plus its waiting transactions up to the first nonce gap. */
  nextNonce(sender: string): bigint {
    const waiting = this.#bySender.get(sender);
    let nonce = this.#readNonce(sender);
    while (waiting?.has(nonce) === true) nonce += 1n;
    return nonce;
  }

  /**
   * Adds a transaction.
   * @throws ProviderRpcError with geth's message if the pool refuses it.
   */
  add(transaction: AdmittedTransaction): void {
    const hash = toHex(transaction.hash);
    if (this.#byHash.has(hash)) throw serverError("already known");
    const sender = toHex(transaction.sender);
    const current = this.#readNonce(sender);
    if (transaction.nonce < current) {
      throw serverError(`nonce too low: next nonce ${current}, tx nonce ${transaction.nonce}`);
    }
    const replaced = this.#bySender.get(sender)?.get(transaction.nonce);
    if (replaced !== undefined) this.#checkReplacement(replaced, transaction);
    else this.#checkPlace(sender, transaction);
    const freedBytes = replaced?.raw.length ?? 0;
    if (this.#bytes - freedBytes + transaction.raw.length > POOL_BYTES_MAX) throw serverError("txpool is full");
    if (replaced !== undefined) this.remove(replaced);
    this.#insert(hash, sender, transaction);
  }

  remove(transaction: Transaction): void {
    if (!this.#byHash.delete(toHex(transaction.hash))) return;
    this.#bytes -= transaction.raw.length;
    const sender = toHex(transaction.sender);
    const waiting = this.#bySender.get(sender);
    waiting?.delete(transaction.nonce);
    if (waiting?.size === 0) this.#bySender.delete(sender);
  }

  /** The transactions that can run now, each after those of its sender with a lower nonce. */
  *executable(): Generator<AdmittedTransaction> {
    const next = new Map<string, bigint>();
    for (const first of this.#byHash.values()) {
      const sender = toHex(first.sender);
      let nonce = next.get(sender) ?? this.#readNonce(sender);
      const waiting = this.#bySender.get(sender);
      // Lower nonces of the sender come before `first`, even if they arrived later, so that they do not delay `first` by a block.
      for (let ready = waiting?.get(nonce); ready !== undefined && nonce <= first.nonce; ready = waiting?.get(nonce)) {
        yield ready;
        nonce += 1n;
      }
      next.set(sender, nonce);
    }
  }

  #insert(hash: string, sender: string, transaction: AdmittedTransaction): void {
    this.#byHash.set(hash, transaction);
    this.#bytes += transaction.raw.length;
    const waiting = this.#bySender.get(sender) ?? new Map<bigint, AdmittedTransaction>();
    waiting.set(transaction.nonce, transaction);
    this.#bySender.set(sender, waiting);
  }

  #checkReplacement(replaced: AdmittedTransaction, transaction: AdmittedTransaction): void {
    const isBetter =
      transaction.maxFeePerGas > replaced.maxFeePerGas &&
      transaction.maxPriorityFeePerGas >= raise(replaced.maxPriorityFeePerGas) &&
      transaction.maxFeePerGas >= raise(replaced.maxFeePerGas);
    if (!isBetter) throw serverError("replacement transaction underpriced");
  }

  #checkPlace(sender: string, transaction: AdmittedTransaction): void {
    if (this.#byHash.size >= POOL_TRANSACTIONS_MAX) throw serverError("txpool is full");
    const behindGap = transaction.nonce - this.nextNonce(sender);
    if (behindGap > BigInt(POOL_GAP_TRANSACTIONS_MAX)) {
      throw serverError(`nonce too high: at most ${POOL_GAP_TRANSACTIONS_MAX} past the next one may wait`);
    }
  }
}

/** The least fee of a transaction that may replace one with `fee`. */
function raise(fee: bigint): bigint {
  return fee + (fee * POOL_REPLACEMENT_PERCENT) / 100n;
}
