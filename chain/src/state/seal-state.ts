import type { Account } from "@ethereumjs/util";
import {
  emptyTrieRoot,
  encodeRlp,
  replaceInTrie,
  type TrieChange,
  toNibbles,
  toLatin1,
  updateTrie,
} from "@stele/eth/node";
import { rememberedKeccakOf } from "../lib/remembered-keccak.ts";
import { encodeAccount } from "./account.ts";
import type { StateChanges } from "./execution-state.ts";
import type { NodeChanges } from "./node-changes.ts";
import { readerOf, type StateView, type StoredTrie } from "./state-view.ts";

export interface SealedState {
  readonly root: Uint8Array;
  readonly nodes: NodeChanges;
  /** The earlier nodes, which `nodes` overwrites. */
  readonly overwritten: NodeChanges;
}

/** Applies a block's changes to the tries. Returns the new state root and the nodes that differ. */
export function sealState(view: StateView, changes: StateChanges): SealedState {
  const tries: ChangedTrie[] = [];
  const accountChanges: TrieChange[] = [];
  for (const [key, account] of changes.accounts) {
    const address = Buffer.from(key, "latin1");
    const slots = changes.storage.get(key);
    let storageRoot = account?.storageRoot;
    if (account !== undefined && slots !== undefined) {
      const storage = changeTrie(view.storageTrie(address), toStorageChanges(slots));
      tries.push(storage);
      storageRoot = storage.root;
    }
    accountChanges.push({ nibbles: toNibbles(rememberedKeccakOf(key)), value: encodePresent(account, storageRoot) });
  }
  const accounts = changeTrie(view.accountTrie(), accountChanges);
  const { nodes, overwritten } = merge([...tries, accounts]);
  return { root: accounts.root, nodes, overwritten };
}

/** A trie after a block, with its nodes that differ, by key. */
interface ChangedTrie {
  readonly root: Uint8Array;
  readonly nodes: Map<string, string | undefined>;
  readonly overwritten: Map<string, string | undefined>;
}

/** Applies changes to a trie. Tries the faster `replaceInTrie` first, since most blocks only replace existing values. */
function changeTrie(stored: StoredTrie, changes: readonly TrieChange[]): ChangedTrie {
  const { prefix, read } = stored;
  const replaced = replaceInTrie(read, changes, { prefix });
  if (replaced !== undefined) return { root: replaced.root, nodes: replaced.nodes, overwritten: replaced.before };
  const update = updateTrie(readerOf(stored), changes);
  const trie: ChangedTrie = { root: update.root ?? emptyTrieRoot, nodes: new Map(), overwritten: new Map() };
  for (const [path, node] of update.nodes) {
    const before = update.before.get(path);
    trie.nodes.set(prefix + path, node && toLatin1(node));
    trie.overwritten.set(prefix + path, before && toLatin1(before));
  }
  return trie;
}

/** Merges the tries' changes into those of the trie with the most nodes, usually the storage of one contract, so that few entries are copied. */
function merge(tries: readonly ChangedTrie[]): Pick<ChangedTrie, "nodes" | "overwritten"> {
  const [largest, ...others] = tries.toSorted((left, right) => right.nodes.size - left.nodes.size);
  if (largest === undefined) return { nodes: new Map(), overwritten: new Map() };
  for (const { nodes, overwritten } of others) {
    for (const [key, node] of nodes) largest.nodes.set(key, node);
    for (const [key, node] of overwritten) largest.overwritten.set(key, node);
  }
  return largest;
}

function encodePresent(account: Account | undefined, storageRoot: Uint8Array | undefined): Uint8Array | undefined {
  if (account === undefined || storageRoot === undefined) return undefined;
  return encodeAccount({ nonce: account.nonce, balance: account.balance, storageRoot, codeHash: account.codeHash });
}

function toStorageChanges(slots: ReadonlyMap<string, Uint8Array>): TrieChange[] {
  return Array.from(slots, ([slot, value]) => ({
    nibbles: toNibbles(rememberedKeccakOf(slot)),
    value: value.length === 0 ? undefined : encodeRlp(value),
  }));
}
