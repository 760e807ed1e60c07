import type { Hash } from "../../../domain/topic.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import { hashesOf, type TransactionState } from "./transaction-state.ts";

/** The signed transactions whose fate can still change, by nonce and by the hash of each version. */
export class InFlight {
  readonly #byNonce = new Map<number, PendingTransaction>();
  readonly #byHash = new Map<Hash, PendingTransaction>();

  get size(): number {
    return this.#byNonce.size;
  }

  /** Number of transactions that no known block contains. */
  get unseen(): number {
    let count = 0;
    for (const { state } of this.#byNonce.values()) if (state.seenIn === undefined) count += 1;
    return count;
  }

  all(): readonly PendingTransaction[] {
    return [...this.#byNonce.values()];
  }

  find(hash: Hash): PendingTransaction | undefined {
    return this.#byHash.get(hash);
  }

  findNonce(nonce: number): PendingTransaction | undefined {
    return this.#byNonce.get(nonce);
  }

  /** The lowest nonce in flight, except those that the chain counts as used although no known block contains them; undefined if there is none. */
  lowestNonce(): number | undefined {
    return this.#findLowest(({ usedSince }) => usedSince === undefined);
  }

  /** The lowest nonce that no known block contains and that the chain does not count as used: the chain waits for it. Undefined if there is none. */
  lowestUnseenNonce(): number | undefined {
    return this.#findLowest(({ seenIn, usedSince }) => seenIn === undefined && usedSince === undefined);
  }

  #findLowest(isWanted: (state: TransactionState) => boolean): number | undefined {
    let lowest: number | undefined;
    for (const [nonce, { state }] of this.#byNonce)
      if ((lowest === undefined || nonce < lowest) && isWanted(state)) lowest = nonce;
    return lowest;
  }

  /** Transactions from `nonce` on, highest nonce first. */
  from(nonce: number): readonly PendingTransaction[] {
    const later = [...this.#byNonce].filter(([one]) => one >= nonce);
    return later.toSorted(([left], [right]) => right - left).map(([, pending]) => pending);
  }

  /** Adds a signed transaction, or its new version. */
  add(pending: PendingTransaction): void {
    const { nonce } = pending.state;
    if (nonce === undefined) throw new Error("a signed transaction has a nonce");
    this.#byNonce.set(nonce, pending);
    for (const hash of hashesOf(pending.state)) this.#byHash.set(hash, pending);
  }

  /** Removes a transaction. `signed` has its nonce and versions, which its current state may have lost. */
  delete(pending: PendingTransaction, signed: Pick<TransactionState, "nonce" | "variants"> = pending.state): void {
    const { nonce } = signed;
    if (nonce !== undefined && this.#byNonce.get(nonce) === pending) this.#byNonce.delete(nonce);
    for (const hash of hashesOf(signed)) this.#byHash.delete(hash);
  }
}
