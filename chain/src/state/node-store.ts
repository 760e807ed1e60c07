import { emptyTrieRoot, isSameBytes, keccak256, toBuffer, fromLatin1, toLatin1 } from "@stele/eth/node";
import type { Header } from "../blocks/header.ts";
import { Generations } from "../lib/generations.ts";
import { Lru } from "../lib/lru.ts";
import { CODE_CACHE_CONTRACTS_MAX, NODE_CACHE_BYTES_MAX, SLOT_CACHE_SLOTS_MAX } from "../limits.ts";
import { CheckedSource, type StateDatabase } from "./checked-source.ts";
import type { NodeChanges } from "./node-changes.ts";
import { createPastView } from "./past-view.ts";
import { type SharedLayer, StateHistory } from "./state-history.ts";
import { type StateSource, StateView } from "./state-view.ts";

/** Bytes of memory that an entry takes besides its node; this includes the key. */
const NODE_OVERHEAD_BYTES = 168;

/** What a committed block changed. */
export interface AppliedChanges {
  /** Root of the state after the block. */
  readonly root: Uint8Array;
  readonly nodes: NodeChanges;
  /** The earlier nodes, which `nodes` overwrote. */
  readonly overwritten: NodeChanges;
  /** Values of slots, by address and slot as latin1. */
  readonly storage: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>;
}

/**
 * Trie nodes of the newest state, one for each path in the tries. A new node overwrites the old one, so the file holds one state however long the chain gets.
 * StateHistory keeps in memory what recent blocks overwrote.
 */
export class NodeStore implements StateSource {
  readonly #source: CheckedSource;
  readonly #nodes = new Generations<string>(NODE_CACHE_BYTES_MAX, weighNode);
  readonly #codes = new Lru<string, Uint8Array>({ entriesMax: CODE_CACHE_CONTRACTS_MAX });
  readonly #history = new StateHistory();
  /** Values of the newest state's slots, so that reading a slot again walks no trie. */
  readonly #slots = new Generations<string>(SLOT_CACHE_SLOTS_MAX);
  #head: StateView;

  /** `root` is the root of the newest state; omit it for a new chain. */
  constructor(database: StateDatabase, root = emptyTrieRoot) {
    this.#source = new CheckedSource(database);
    this.#head = new StateView(this, root, this.#slots);
  }

  findNode(key: string, hash: Uint8Array): string | undefined {
    const cached = this.#nodes.get(key);
    if (cached !== undefined) return cached;
    const read = this.#source.findNode(key, hash);
    if (read !== undefined) this.#nodes.set(key, read);
    return read;
  }

  findCode(codeHash: Uint8Array): Uint8Array {
    const key = toLatin1(codeHash);
    const cached = this.#codes.get(key);
    if (cached !== undefined) return cached;
    const stored = this.#source.findCode(codeHash);
    this.#codes.set(key, stored);
    return stored;
  }

  /** A node from memory, if it matches the hash. */
  recall(key: string, hash: Uint8Array): Uint8Array | undefined {
    const node = this.#nodes.get(key);
    return fitting(node === undefined ? undefined : fromLatin1(node), hash);
  }

  /** Code from memory, if it matches the hash. */
  recallCode(codeHash: Uint8Array): Uint8Array | undefined {
    return fitting(this.#codes.get(toBuffer(codeHash).toString("latin1")), codeHash);
  }

  /** The state after the newest block. Valid until the next block: then call this again. */
  head(): StateView {
    return this.#head;
  }

  /** The state after an earlier block; undefined when it is no longer kept. */
  findAt({ number, stateRoot }: Pick<Header, "number" | "stateRoot">): StateView | undefined {
    const overwritten = this.#history.findSince(number);
    return overwritten === undefined ? undefined : createPastView(this, stateRoot, overwritten);
  }

  /** The nodes that blocks after `after` overwrote, for another thread; all that are kept if `after` is undefined. */
  shareHistory(after: bigint | undefined): SharedLayer[] {
    return this.#history.share(after);
  }

  /** Applies the changes of a committed block. */
  apply(blockNumber: bigint, { root, nodes, overwritten, storage }: AppliedChanges): void {
    this.#history.add(blockNumber, overwritten);
    nodes.forEach((node, key) => {
      if (node === undefined) this.#nodes.delete(key);
      else this.#nodes.set(key, node);
    });
    storage.forEach((slots, address) => {
      slots.forEach((value, slot) => this.#slots.set(address + slot, toLatin1(value)));
    });
    this.#head = new StateView(this, root, this.#slots);
  }
}

function fitting(bytes: Uint8Array | undefined, hash: Uint8Array): Uint8Array | undefined {
  return bytes !== undefined && isSameBytes(keccak256(bytes), hash) ? bytes : undefined;
}

function weighNode(node: string): number {
  return node.length + NODE_OVERHEAD_BYTES;
}
