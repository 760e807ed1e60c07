import { encodeRlp } from "../lib/rlp.ts";
import type { Account } from "@ethereumjs/util";
import { keccak256 } from "../lib/crypto.ts";
import { EMPTY_TRIE_ROOT, encodeAccount } from "./account.ts";
import type { StateChanges } from "./execution-state.ts";
import { accountNodeKey, type StateView, storageNodeKey } from "./state-view.ts";
import { toNibbles } from "./trie/node.ts";
import { type TrieChange, updateTrie } from "./trie/update.ts";

export interface SealedState {
  readonly root: Uint8Array;
  readonly nodes: ReadonlyMap<string, Uint8Array | undefined>;
}

/** Writes what a block changed into the tries and gives the new state root with the nodes that differ. */
export function sealState(view: StateView, changes: StateChanges): SealedState {
  const nodes = new Map<string, Uint8Array | undefined>();
  const accountChanges: TrieChange[] = [];
  for (const [key, account] of changes.accounts) {
    const address = Buffer.from(key, "latin1");
    const addressHash = keccak256(address);
    const slots = changes.storage.get(key);
    const storageRoot =
      account === undefined || slots === undefined
        ? account?.storageRoot
        : sealStorage(view, { addressHash, slots, nodes });
    accountChanges.push({ nibbles: toNibbles(addressHash), value: encodePresent(account, storageRoot) });
  }
  const update = updateTrie(view.accountReader(), accountChanges);
  for (const [path, node] of update.nodes) nodes.set(accountNodeKey(path), node);
  return { root: update.root ?? EMPTY_TRIE_ROOT, nodes };
}

function encodePresent(account: Account | undefined, storageRoot: Uint8Array | undefined): Uint8Array | undefined {
  if (account === undefined || storageRoot === undefined) return undefined;
  return encodeAccount({ nonce: account.nonce, balance: account.balance, storageRoot, codeHash: account.codeHash });
}

interface StorageChanges {
  readonly addressHash: Uint8Array;
  readonly slots: ReadonlyMap<string, Uint8Array>;
  readonly nodes: Map<string, Uint8Array | undefined>;
}

function sealStorage(view: StateView, { addressHash, slots, nodes }: StorageChanges): Uint8Array {
  const changes = Array.from(slots, ([slot, value]) => ({
    nibbles: toNibbles(keccak256(Buffer.from(slot, "latin1"))),
    value: value.length === 0 ? undefined : encodeRlp(value),
  }));
  const update = updateTrie(view.storageReader(addressHash), changes);
  for (const [path, node] of update.nodes) nodes.set(storageNodeKey(addressHash, path), node);
  return update.root ?? EMPTY_TRIE_ROOT;
}
