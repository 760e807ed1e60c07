import { decodeRlp } from "../lib/rlp.ts";
import { EMPTY_BYTES, isSameBytes, toBuffer } from "../lib/bytes.ts";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import type { Generations } from "../lib/generations.ts";
import { Lru } from "../lib/lru.ts";
import { STATE_VIEW_ACCOUNTS_MAX } from "../limits.ts";
import { decodeAccount, EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, type StoredAccount } from "./account.ts";
import { proveTrie, readTrie } from "./trie/read.ts";
import type { NodeReader } from "./trie/update.ts";

/** Where a view finds trie nodes and code. Node keys come from `accountNodeKey` and `storageNodeKey`. */
export interface StateSource {
  findNode(key: string): Uint8Array | undefined;
  findCode(codeHash: Uint8Array): Uint8Array | undefined;
}

export function accountNodeKey(path: string): string {
  return `A${path}`;
}

export function storageNodeKey(addressHash: Uint8Array, path: string): string {
  return `S${toBuffer(addressHash).toString("latin1")}${path}`;
}

/** The state after one block, read through its tries. */
export class StateView {
  readonly #source: StateSource;
  readonly #slots: Generations<Uint8Array> | undefined;
  readonly #accounts = new Lru<string, StoredAccount>({ entriesMax: STATE_VIEW_ACCOUNTS_MAX });

  /** `slots` are known values of this state, by address and slot as latin1; those that are read become part of them. */
  constructor(source: StateSource, slots?: Generations<Uint8Array>) {
    this.#source = source;
    this.#slots = slots;
  }

  findAccount(address: Uint8Array): StoredAccount | undefined {
    const key = toText(address);
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const account = this.#readAccount(address);
    if (account !== undefined) this.#accounts.set(key, account);
    return account;
  }

  #readAccount(address: Uint8Array): StoredAccount | undefined {
    const encoded = readTrie(this.accountReader(), rememberedKeccak(address));
    return encoded === undefined ? undefined : decodeAccount(encoded);
  }

  /** The value of a slot without leading zeros; empty when nothing is stored. */
  getStorage(address: Uint8Array, slot: Uint8Array): Uint8Array {
    if (this.#slots === undefined) return this.#readStorage(address, slot);
    const key = toText(address) + toText(slot);
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const value = this.#readStorage(address, slot);
    this.#slots.set(key, value);
    return value;
  }

  #readStorage(address: Uint8Array, slot: Uint8Array): Uint8Array {
    const account = this.findAccount(address);
    if (account === undefined || isSameBytes(account.storageRoot, EMPTY_TRIE_ROOT)) return EMPTY_BYTES;
    const encoded = readTrie(this.storageReader(rememberedKeccak(address)), rememberedKeccak(slot));
    // A slot's value is one RLP string.
    return encoded === undefined ? EMPTY_BYTES : (decodeRlp(encoded) as Uint8Array);
  }

  getCode(address: Uint8Array): Uint8Array {
    const account = this.findAccount(address);
    return account === undefined ? EMPTY_BYTES : this.getCodeByHash(account.codeHash);
  }

  getCodeByHash(codeHash: Uint8Array): Uint8Array {
    if (isSameBytes(codeHash, EMPTY_CODE_HASH)) return EMPTY_BYTES;
    const code = this.#source.findCode(codeHash);
    if (code === undefined) throw new Error("The code of a contract is missing.");
    return code;
  }

  proveAccount(address: Uint8Array): Uint8Array[] {
    return proveTrie(this.accountReader(), rememberedKeccak(address));
  }

  proveStorage(address: Uint8Array, slot: Uint8Array): Uint8Array[] {
    return proveTrie(this.storageReader(rememberedKeccak(address)), rememberedKeccak(slot));
  }

  accountReader(): NodeReader {
    return (path) => this.#source.findNode(accountNodeKey(path));
  }

  storageReader(addressHash: Uint8Array): NodeReader {
    return (path) => this.#source.findNode(storageNodeKey(addressHash, path));
  }
}

function toText(bytes: Uint8Array): string {
  return toBuffer(bytes).toString("latin1");
}
