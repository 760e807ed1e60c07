import type { Account } from "@ethereumjs/util";
import {
  emptyTrieRoot,
  encodeRlp,
  type NodeReader,
  replaceInTrie,
  type TrieChange,
  type TrieUpdate,
  toNibbles,
  updateTrie,
} from "@stele/eth/node";
import { rememberedKeccak } from "../lib/remembered-keccak.ts";
import { encodeAccount } from "./account.ts";
import type { StateChanges } from "./execution-state.ts";
import type { NodeChanges } from "./node-changes.ts";
import { accountNodeKey, type StateView, storageNodeKey } from "./state-view.ts";

export interface SealedState {
  readonly root: Uint8Array;
  readonly nodes: NodeChanges;
  /** What those nodes overwrite. */
  readonly overwritten: NodeChanges;
}

/** Writes what a block changed into the tries and gives the new state root with the nodes that differ. */
export function sealState(view: StateView, changes: StateChanges): SealedState {
  const nodes = new ChangedNodes();
  const accountChanges: TrieChange[] = [];
  for (const [key, account] of changes.accounts) {
    const address = Buffer.from(key, "latin1");
    const slots = changes.storage.get(key);
    const storageRoot =
      account === undefined || slots === undefined
        ? account?.storageRoot
        : sealStorage(view, { address, slots, nodes });
    accountChanges.push({ nibbles: toNibbles(rememberedKeccak(address)), value: encodePresent(account, storageRoot) });
  }
  const update = changeTrie(view.accountReader(), accountChanges);
  nodes.add(update, accountNodeKey);
  return { root: update.root ?? emptyTrieRoot, nodes: nodes.after, overwritten: nodes.before };
}

class ChangedNodes {
  readonly before = new Map<string, Uint8Array | undefined>();
  readonly after = new Map<string, Uint8Array | undefined>();

  add(update: TrieUpdate, toKey: (path: string) => string): void {
    for (const [path, node] of update.nodes) {
      const key = toKey(path);
      this.before.set(key, update.before.get(path));
      this.after.set(key, node);
    }
  }
}

/** Most blocks change values that are there. */
function changeTrie(read: NodeReader, changes: readonly TrieChange[]): TrieUpdate {
  return replaceInTrie(read, changes) ?? updateTrie(read, changes);
}

function encodePresent(account: Account | undefined, storageRoot: Uint8Array | undefined): Uint8Array | undefined {
  if (account === undefined || storageRoot === undefined) return undefined;
  return encodeAccount({ nonce: account.nonce, balance: account.balance, storageRoot, codeHash: account.codeHash });
}

interface StorageChanges {
  readonly address: Uint8Array;
  readonly slots: ReadonlyMap<string, Uint8Array>;
  readonly nodes: ChangedNodes;
}

function sealStorage(view: StateView, { address, slots, nodes }: StorageChanges): Uint8Array {
  const changes = Array.from(slots, ([slot, value]) => ({
    nibbles: toNibbles(rememberedKeccak(Buffer.from(slot, "latin1"))),
    value: value.length === 0 ? undefined : encodeRlp(value),
  }));
  const update = changeTrie(view.storageReader(address), changes);
  const addressHash = rememberedKeccak(address);
  nodes.add(update, (path) => storageNodeKey(addressHash, path));
  return update.root ?? emptyTrieRoot;
}
