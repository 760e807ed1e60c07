import { decodeRlp, encodeRlp } from "../lib/rlp.ts";
import { fromBigint, toBigint } from "../lib/bytes.ts";
import { keccak256 } from "../lib/crypto.ts";

export interface StoredAccount {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly storageRoot: Uint8Array;
  readonly codeHash: Uint8Array;
}

/** Root of a trie with nothing in it: keccak256(RLP("")). */
export const EMPTY_TRIE_ROOT = keccak256(Uint8Array.of(0x80));

/** Hash of no code. */
export const EMPTY_CODE_HASH = keccak256(new Uint8Array(0));

export function encodeAccount(account: StoredAccount): Uint8Array {
  return encodeRlp([fromBigint(account.nonce), fromBigint(account.balance), account.storageRoot, account.codeHash]);
}

export function decodeAccount(encoded: Uint8Array): StoredAccount {
  // An account is written by encodeAccount alone: a flat list of four byte strings.
  const [nonce, balance, storageRoot, codeHash] = decodeRlp(encoded) as Uint8Array[];
  if (nonce === undefined || balance === undefined || storageRoot === undefined || codeHash === undefined) {
    throw new Error("A stored account is malformed.");
  }
  return { nonce: toBigint(nonce), balance: toBigint(balance), storageRoot, codeHash };
}
