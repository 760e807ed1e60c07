import type { Address, Hash } from "../../../domain/topic.ts";
import { findFirstTrue } from "../../../lib/first-true.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import type { Receipt, Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";
import { keptBlocksMax } from "./kept-transactions.ts";
import { hashesOf, type TransactionRequest, type TransactionState } from "./transaction-state.ts";

export type Fate =
  /** The transaction is in a final block. */
  | { readonly kind: "included"; readonly receipt: Receipt }
  /**
   * The transaction is in a block that is not final, or not read yet, or whose receipts the endpoint lacks. `isDeep`: the block is so far below the newest
   * final one that no reorg can remove it.
   */
  | { readonly kind: "seen"; readonly blockNumber: number; readonly isDeep?: boolean }
  /** A final block contains another transaction with the same nonce, so the transaction is never included. */
  | { readonly kind: "replaced" }
  /**
   * The endpoint has no receipt for it, and no final block is known to contain another transaction with its nonce. `count` is the account's number of
   * final transactions; undefined if the endpoint lacks the state of the final block.
   */
  | { readonly kind: "absent"; readonly count: number | undefined };

export interface FateOptions {
  readonly rpc: Rpc;
  readonly sender: Address;
  /** The newest final block that was read. */
  readonly readUpTo: () => number;
  /** Whether a block up to `readUpTo` is on the branch that was read. */
  readonly isRead: (block: BlockRef) => Promise<boolean>;
}

type Signed = Pick<TransactionState, "nonce" | "variants"> & {
  readonly request?: Pick<TransactionRequest, "mayLackLogs">;
};

/**
 * Asks for the receipts of all versions of a transaction; without a receipt, asks who used its nonce. A missing receipt proves nothing: the chain node may
 * lag behind the one that counted, or count a block before it has its receipts. So `replaced` needs the other transaction itself. @throws RpcFailure.
 */
export async function findFate(pending: Signed, options: FateOptions): Promise<Fate> {
  const found = await findIncluded(pending, options);
  if (found !== undefined) return found;
  const count = await findCount(options);
  const { nonce } = pending;
  if (nonce === undefined || (count !== undefined && count <= nonce)) return { kind: "absent", count };
  // This endpoint may have deleted the receipt, and another one may still have it.
  const known = (await findIncluded(pending, { ...options, isPromised: true })) ?? (await findKnown(pending, options));
  if (known !== undefined) return known;
  if (count === undefined) return { kind: "absent", count };
  const user = await findNonceUser(nonce, options);
  if (user === undefined) return { kind: "absent", count };
  return hashesOf(pending).includes(user.hash) ? seenIn(user.blockNumber, options) : { kind: "replaced" };
}

/** The block of a version whose receipt all endpoints lack: chain nodes delete old receipts, and keep transactions longer. */
async function findKnown(pending: Signed, options: FateOptions): Promise<Fate | undefined> {
  const { rpc, readUpTo, isRead } = options;
  for (const hash of hashesOf(pending)) {
    const number = await unlessRefused(async () => {
      const block = await rpc.findBlockOf(hash);
      // A chain node on another branch has another block there.
      return block === undefined || block.number > readUpTo() || (await isRead(block)) ? block?.number : undefined;
    });
    if (number !== undefined) return seenIn(number, options);
  }
  return undefined;
}

function seenIn(blockNumber: number, { readUpTo }: FateOptions): Fate {
  return { kind: "seen", blockNumber, isDeep: blockNumber <= readUpTo() - keptBlocksMax };
}

/**
 * The account's number of transactions up to the newest final block; undefined if the endpoint lacks the state of that block. The block may be far below the
 * head: chain nodes keep the state of few past blocks, and none if they were restored from a snapshot.
 */
async function findCount({ rpc, sender, readUpTo }: FateOptions): Promise<number | undefined> {
  return unlessRefused(() => rpc.transactionCount(sender, Math.max(0, readUpTo())));
}

async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof RpcFailure && !isUnanswered(error)) return undefined;
    throw error;
  }
}

/**
 * The transaction in a final block that used a nonce. Looks from the newest final block back, since most nonces were used recently. Undefined if the endpoint
 * lacks the state of old blocks or is on another branch.
 */
async function findNonceUser(
  nonce: number,
  { rpc, sender, readUpTo, isRead }: FateOptions,
): Promise<{ readonly hash: Hash; readonly blockNumber: number } | undefined> {
  const newest = Math.max(0, readUpTo());
  const isUnusedAt = async (block: number): Promise<boolean> => (await rpc.transactionCount(sender, block)) <= nonce;
  return unlessRefused(async () => {
    const back = await findFirstTrue(newest, async (index) => isUnusedAt(newest - 1 - index));
    const blockNumber = newest - back;
    const user = await rpc.findTransaction(blockNumber, { sender, nonce });
    // A chain node on another branch has another block there.
    const isReal = user !== undefined && (await isRead({ number: blockNumber, hash: user.blockHash }));
    return isReal ? { hash: user.hash, blockNumber } : undefined;
  });
}

async function findIncluded(
  pending: Signed,
  { rpc, readUpTo, isRead, isPromised = false }: FateOptions & { readonly isPromised?: boolean },
): Promise<Fate | undefined> {
  for (const hash of hashesOf(pending)) {
    const receipt = await rpc.receipt(hash, { isPromised, mayLackLogs: pending.request?.mayLackLogs });
    if (receipt === undefined) continue;
    const { blockNumber, blockHash } = receipt;
    // The tracker will bring the logs of a block that is not read yet.
    if (blockNumber > readUpTo()) return { kind: "seen", blockNumber };
    // A chain node on another branch has another block there.
    if (await isRead({ number: blockNumber, hash: blockHash })) return { kind: "included", receipt };
  }
  return undefined;
}
