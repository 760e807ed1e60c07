import {
  decodeRlp,
  emptyBytes,
  emptyTrieRoot,
  isSameBytes,
  type NodeReader,
  type NodeTextReader,
  proveTrie,
  readTrie,
  fromLatin1,
  toLatin1,
} from "@stele/eth/node";
import type { Generations } from "../lib/generations.ts";
import { Lru } from "../lib/lru.ts";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import { STATE_VIEW_ACCOUNTS_MAX } from "../limits.ts";
import { decodeAccount, EMPTY_CODE_HASH, type StoredAccount } from "./account.ts";

/**
 * Finds trie nodes, as latin1, and code by hashes that the caller knows. Node keys come from `accountNodeKey` and `storageNodeKey`.
 * @throws ChainDamagedError if the file lacks the node or code, or has other bytes in its place.
 */
export interface StateSource {
  findNode(key: string, hash: Uint8Array): string | undefined;
  findCode(codeHash: Uint8Array): Uint8Array;
}

export function accountNodeKey(path: string): string {
  return `A${path}`;
}

export function storageNodeKey(addressHash: Uint8Array, path: string): string {
  return `S${toLatin1(addressHash)}${path}`;
}

/** A trie whose nodes are read by their keys: the prefix and the path. */
export interface StoredTrie {
  readonly prefix: string;
  /** Reads a node by its key; without a hash, the root. */
  readonly read: NodeTextReader;
}

/** The state after one block, read through its tries. */
export class StateView {
  readonly #source: StateSource;
  readonly #root: Uint8Array;
  readonly #slots: Generations<string> | undefined;
  readonly #accounts = new Lru<string, StoredAccount>({ entriesMax: STATE_VIEW_ACCOUNTS_MAX });

  /** `root` is the root of the accounts' trie. `slots` caches values of this state by address and slot as latin1. */
  constructor(source: StateSource, root: Uint8Array, slots?: Generations<string>) {
    this.#source = source;
    this.#root = root;
    this.#slots = slots;
  }

  findAccount(address: Uint8Array): StoredAccount | undefined {
    const key = toLatin1(address);
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const account = this.#readAccount(address);
    if (account !== undefined) this.#accounts.set(key, account);
    return account;
  }

  #readAccount(address: Uint8Array): StoredAccount | undefined {
    const encoded = readTrie(readerOf(this.accountTrie()), rememberedKeccak(address));
    return encoded === undefined ? undefined : decodeAccount(encoded);
  }

  /** The value of a slot without leading zeros; empty when nothing is stored. */
  getStorage(address: Uint8Array, slot: Uint8Array): Uint8Array {
    if (this.#slots === undefined) return this.#readStorage(address, slot);
    const key = toLatin1(address) + toLatin1(slot);
    const known = this.#slots.get(key);
    if (known !== undefined) return fromLatin1(known);
    const value = this.#readStorage(address, slot);
    this.#slots.set(key, toLatin1(value));
    return value;
  }

  #readStorage(address: Uint8Array, slot: Uint8Array): Uint8Array {
    const encoded = readTrie(readerOf(this.storageTrie(address)), rememberedKeccak(slot));
    // A slot's value is one RLP string.
    return encoded === undefined ? emptyBytes : (decodeRlp(encoded) as Uint8Array);
  }

  getCode(address: Uint8Array): Uint8Array {
    const account = this.findAccount(address);
    return account === undefined ? emptyBytes : this.getCodeByHash(account.codeHash);
  }

  getCodeByHash(codeHash: Uint8Array): Uint8Array {
    if (isSameBytes(codeHash, EMPTY_CODE_HASH)) return emptyBytes;
    return this.#source.findCode(codeHash);
  }

  proveAccount(address: Uint8Array): Uint8Array[] {
    return proveTrie(readerOf(this.accountTrie()), rememberedKeccak(address));
  }

  proveStorage(address: Uint8Array, slot: Uint8Array): Uint8Array[] {
    return proveTrie(readerOf(this.storageTrie(address)), rememberedKeccak(slot));
  }

  accountTrie(): StoredTrie {
    return this.#trie(accountNodeKey(""), this.#root);
  }

  storageTrie(address: Uint8Array): StoredTrie {
    const root = this.findAccount(address)?.storageRoot ?? emptyTrieRoot;
    return this.#trie(storageNodeKey(rememberedKeccak(address), ""), root);
  }

  #trie(prefix: string, root: Uint8Array): StoredTrie {
    return { prefix, read: (key, hash = root) => this.#source.findNode(key, hash) };
  }
}

/** A reader that takes paths without the trie's prefix. */
export function readerOf({ prefix, read }: StoredTrie): NodeReader {
  return (path, hash) => {
    const node = read(prefix + path, hash);
    return node === undefined ? undefined : fromLatin1(node);
  };
}
