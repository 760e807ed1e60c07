import { gunzipSync } from "node:zlib";

/** A dump of anvil's state. */
export interface ChainState {
  readonly text: string;
  readonly height: number;
  /** False if anvil made a block during the dump: the dump then has the block's effects on the accounts, but not the block. */
  readonly isConsistent: boolean;
}

interface DumpedState {
  readonly best_block_number: number | string;
  readonly accounts: Readonly<Record<string, { readonly nonce: number; readonly code: string }>>;
  readonly transactions: readonly { readonly info: { readonly from: string; readonly nonce: number } }[];
}

const noCode = "0x";

/** Decodes the result of `anvil_dumpState`. */
export function readState(dump: string): ChainState {
  const text = gunzipSync(Buffer.from(dump.slice("0x".length), "hex")).toString();
  const state = JSON.parse(text) as DumpedState; // Anvil's own format.
  return { text, height: Number(state.best_block_number), isConsistent: isConsistent(state) };
}

/**
 * Whether the dump has all transactions that the nonces count. Ignores contracts. A nonce may be lower than the number of listed transactions, because
 * the list may have transactions of removed blocks.
 */
function isConsistent({ accounts, transactions }: DumpedState): boolean {
  const counts = new Map<string, number>();
  for (const { from, nonce } of transactions.map(({ info }) => info)) {
    counts.set(from, Math.max(counts.get(from) ?? 0, nonce + 1));
  }
  return Object.entries(accounts).every(
    ([address, { nonce, code }]) => code !== noCode || nonce <= (counts.get(address) ?? 0),
  );
}
