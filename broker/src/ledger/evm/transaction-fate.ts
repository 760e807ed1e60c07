import type { Address } from "../../domain/topic.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import type { Receipt, Rpc } from "./rpc.ts";

/** What the chain knows of a transaction. */
export type Fate =
  /** It is in a final block. */
  | { readonly kind: "included"; readonly receipt: Receipt }
  /** It is in a block that is not final, or not read yet. */
  | { readonly kind: "seen"; readonly blockNumber: number }
  /** Another transaction with its nonce is in a final block: it never comes in. */
  | { readonly kind: "replaced" }
  /** No block holds it. `count` is how many transactions of the key are final. */
  | { readonly kind: "absent"; readonly count: number };

export interface FateOptions {
  readonly rpc: Rpc;
  readonly sender: Address;
  /** The newest final block that was read. */
  readonly readUpTo: () => number;
}

/** Asks for the receipts of every form of a transaction, and for the fate of its nonce where there is none. @throws RpcFailure. */
export async function findFate(pending: PendingTransaction, options: FateOptions): Promise<Fate> {
  const { rpc, sender, readUpTo } = options;
  const found = await findIncluded(pending, options);
  if (found !== undefined) return found;
  const count = await rpc.transactionCount(sender, Math.max(0, readUpTo()));
  if (count <= (pending.nonce ?? count)) return { kind: "absent", count };
  // It may have come in between the two questions; only what is still without a receipt was replaced.
  return (await findIncluded(pending, options)) ?? { kind: "replaced" };
}

async function findIncluded(pending: PendingTransaction, { rpc, readUpTo }: FateOptions): Promise<Fate | undefined> {
  for (const hash of pending.hashes) {
    const receipt = await rpc.receipt(hash);
    if (receipt === undefined) continue;
    const { blockNumber } = receipt;
    // The logs of a block that is not read yet come by themselves.
    return blockNumber <= readUpTo() ? { kind: "included", receipt } : { kind: "seen", blockNumber };
  }
  return undefined;
}
