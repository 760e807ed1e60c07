import {
  type ChildNode,
  decodeNode,
  emptyTrieRoot,
  fromLatin1,
  isSameBytes,
  type TrieNode,
  toPathString,
} from "@stele/eth/node";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import type { CheckedState, StatePlace } from "../messages.ts";
import { decodeAccount, EMPTY_CODE_HASH } from "../state/account.ts";
import { accountNodeKey, type StateSource, storageNodeKey } from "../state/state-view.ts";

export interface StateCheckOptions {
  /** Reads nodes and code from the file, and compares each with its hash. */
  readonly source: StateSource;
  /** Root of the newest state. */
  readonly root: Uint8Array;
  /** Rewrites a node that is still in memory. Returns whether the file now has it. */
  readonly repairNode: (key: string, hash: Uint8Array) => boolean;
  /** Rewrites a contract's code if that code is still in memory. Returns whether the file now has it. */
  readonly repairCode: (hash: Uint8Array) => boolean;
}

const START: StatePlace = { account: "", slot: "" };

/**
 * Compares up to `nodesMax` nodes and codes of the newest state with their hashes, in the order of their paths, starting at `from`. Each call walks down from
 * `root`, which may be newer than in the call before: the chain may make blocks between two calls. `nodesMax` must be above 128, the largest number of nodes
 * on one path.
 */
export function checkState(options: StateCheckOptions, from: StatePlace | undefined, nodesMax: number): CheckedState {
  return new StateCheck(options, from ?? START, nodesMax).run();
}

/** A trie of the state: where the walk begins in it, and how to find its nodes. */
interface Trie {
  readonly from: string;
  keyOf(path: string): string;
  placeOf(path: string): StatePlace;
  /** Visits a leaf. Returns false to stop the walk. */
  leaf(path: string, value: Uint8Array): boolean;
}

class StateCheck {
  readonly #options: StateCheckOptions;
  readonly #from: StatePlace;
  readonly #nodesMax: number;
  readonly #damaged: string[] = [];
  #nodes = 0;
  #repaired = 0;
  #next: StatePlace | undefined;

  constructor(options: StateCheckOptions, from: StatePlace, nodesMax: number) {
    this.#options = options;
    this.#from = from;
    this.#nodesMax = nodesMax;
  }

  run(): CheckedState {
    this.#walk({ kind: "hash", hash: this.#options.root }, "", {
      from: this.#from.account,
      keyOf: accountNodeKey,
      placeOf: (path) => ({ account: path, slot: "" }),
      leaf: (path, value) => this.#checkAccount(path, value),
    });
    return { next: this.#next, nodes: this.#nodes, damaged: this.#damaged, repaired: this.#repaired };
  }

  /** Checks a node and all nodes below it, except those on paths before `trie.from`. Returns false once `nodesMax` nodes are read. */
  #walk(node: ChildNode, path: string, trie: Trie): boolean {
    if (path < trie.from && !trie.from.startsWith(path)) return true;
    if (node.kind === "hash") return this.#walkStored(node.hash, path, trie);
    if (node.kind === "extension") return this.#walk(node.child, path + toPathString(node.path), trie);
    if (node.kind === "leaf") {
      const full = path + toPathString(node.path);
      return full < trie.from || trie.leaf(full, node.value);
    }
    return node.children.every(
      (child, index) => child === undefined || this.#walk(child, path + String.fromCharCode(index), trie),
    );
  }

  #walkStored(hash: Uint8Array, path: string, trie: Trie): boolean {
    if (isSameBytes(hash, emptyTrieRoot)) return true;
    if (this.#nodes === this.#nodesMax) {
      this.#next = trie.placeOf(path);
      return false;
    }
    this.#nodes += 1;
    const key = trie.keyOf(path);
    const node = this.#read(
      () => this.#readNode(key, hash),
      () => this.#options.repairNode(key, hash),
    );
    return node === undefined || this.#walk(node, path, trie);
  }

  #readNode(key: string, hash: Uint8Array): TrieNode | undefined {
    const encoded = this.#options.source.findNode(key, hash);
    return encoded === undefined ? undefined : decodeNode(fromLatin1(encoded));
  }

  #checkAccount(path: string, value: Uint8Array): boolean {
    const { codeHash, storageRoot } = decodeAccount(value);
    const isContinued = path === this.#from.account && this.#from.slot !== "";
    if (!isContinued && !isSameBytes(codeHash, EMPTY_CODE_HASH)) {
      this.#nodes += this.#nodes < this.#nodesMax ? 1 : 0;
      this.#read(
        () => this.#options.source.findCode(codeHash),
        () => this.#options.repairCode(codeHash),
      );
    }
    const addressHash = toBytes(path);
    return this.#walk({ kind: "hash", hash: storageRoot }, "", {
      from: isContinued ? this.#from.slot : "",
      keyOf: (slot) => storageNodeKey(addressHash, slot),
      placeOf: (slot) => ({ account: path, slot }),
      leaf: () => true,
    });
  }

  /** Reads data, and repairs damaged data if it can. Undefined if the data is damaged and cannot be repaired. */
  #read<Result>(read: () => Result, repair: () => boolean): Result | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ChainDamagedError)) throw error;
      if (repair()) {
        this.#repaired += 1;
        return read();
      }
      this.#damaged.push(error.message);
      return undefined;
    }
  }
}

/** Packs two nibbles of a path into each byte. */
function toBytes(path: string): Uint8Array {
  const nibbles = Buffer.from(path, "latin1");
  return Uint8Array.from(
    { length: nibbles.length / 2 },
    (_, at) => ((nibbles[2 * at] ?? 0) << 4) | (nibbles[2 * at + 1] ?? 0),
  );
}
