import type { Hash } from "../../../domain/topic.ts";
import type { PendingTransaction, Variant } from "./pending-transaction.ts";

/** The signed transactions whose fate can still change, by nonce and by the hash of each of their forms. */
export class InFlight {
  readonly #byNonce = new Map<number, PendingTransaction>();
  readonly #byHash = new Map<Hash, PendingTransaction>();

  get size(): number {
    return this.#byNonce.size;
  }

  /** Those of which no block is known that holds them. */
  get unseen(): number {
    let count = 0;
    for (const { seenIn } of this.#byNonce.values()) if (seenIn === undefined) count += 1;
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

  has(nonce: number): boolean {
    return this.#byNonce.has(nonce);
  }

  /** The lowest nonce; undefined when nothing is in flight. */
  lowestNonce(): number | undefined {
    let lowest: number | undefined;
    for (const nonce of this.#byNonce.keys()) if (lowest === undefined || nonce < lowest) lowest = nonce;
    return lowest;
  }

  /** The lowest nonce of those of which no block is known that holds them. */
  lowestUnseenNonce(): number | undefined {
    let lowest: number | undefined;
    for (const [nonce, { seenIn }] of this.#byNonce) {
      if (seenIn === undefined && (lowest === undefined || nonce < lowest)) lowest = nonce;
    }
    return lowest;
  }

  /** Those from `nonce` on, the highest first. */
  from(nonce: number): readonly PendingTransaction[] {
    const later = [...this.#byNonce].filter(([one]) => one >= nonce);
    return later.toSorted(([left], [right]) => right - left).map(([, pending]) => pending);
  }

  /** Takes a signed form of a transaction, the first or a further one. */
  add(pending: PendingTransaction, variant: Variant): void {
    if (pending.nonce === undefined) throw new Error("a signed transaction has a nonce");
    pending.variants = [variant, ...pending.variants];
    this.#byNonce.set(pending.nonce, pending);
    this.#byHash.set(variant.hash, pending);
  }

  /** Takes a transaction with all its forms. */
  adopt(pending: PendingTransaction): void {
    if (pending.nonce === undefined) throw new Error("a signed transaction has a nonce");
    this.#byNonce.set(pending.nonce, pending);
    for (const hash of pending.hashes) this.#byHash.set(hash, pending);
  }

  delete(pending: PendingTransaction): void {
    if (pending.nonce !== undefined && this.#byNonce.get(pending.nonce) === pending)
      this.#byNonce.delete(pending.nonce);
    for (const hash of pending.hashes) this.#byHash.delete(hash);
  }
}
