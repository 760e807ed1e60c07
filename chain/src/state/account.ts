import { decodeRlp, encodeRlp, fromInteger, keccak256, toBigint } from "@stele/eth/node";

export interface StoredAccount {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly storageRoot: Uint8Array;
  readonly codeHash: Uint8Array;
}

/** Hash of empty code. */
export const EMPTY_CODE_HASH = keccak256(new Uint8Array(0));

export function encodeAccount(account: StoredAccount): Uint8Array {
  return encodeRlp([fromInteger(account.nonce), fromInteger(account.balance), account.storageRoot, account.codeHash]);
}

export function decodeAccount(encoded: Uint8Array): StoredAccount {
  // Only encodeAccount writes accounts: a flat list of four byte strings.
  const [nonce, balance, storageRoot, codeHash] = decodeRlp(encoded) as Uint8Array[];
  if (nonce === undefined || balance === undefined || storageRoot === undefined || codeHash === undefined) {
    throw new Error("A stored account is malformed.");
  }
  return { nonce: toBigint(nonce), balance: toBigint(balance), storageRoot, codeHash };
}
