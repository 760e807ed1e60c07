import { emptyTrieRoot, isSameBytes, keccak256, toBuffer, fromText, toText } from "@stele/eth/node";
import type { Header } from "../blocks/header.ts";
import { Generations } from "../lib/generations.ts";
import { Lru } from "../lib/lru.ts";
import { CODE_CACHE_CONTRACTS_MAX, NODE_CACHE_BYTES_MAX, SLOT_CACHE_SLOTS_MAX } from "../limits.ts";
import { CheckedSource, type StateDatabase } from "./checked-source.ts";
import type { NodeChanges } from "./node-changes.ts";
import { createPastView } from "./past-view.ts";
import { type SharedLayer, StateHistory } from "./state-history.ts";
import { type StateSource, StateView } from "./state-view.ts";

/** Of an entry, with its key. */
const NODE_OVERHEAD_BYTES = 168;

/** What a committed block changed. */
export interface AppliedChanges {
  /** Of the state afterwards. */
  readonly root: Uint8Array;
  readonly nodes: NodeChanges;
  /** What those nodes overwrote. */
  readonly overwritten: NodeChanges;
  /** Values of slots, by address and slot as latin1. */
  readonly storage: ReadonlyMap<string, ReadonlyMap<string, Uint8Array>>;
}

/**
 * Trie nodes of the newest state, one for each place in the tries. A new node overwrites the old one, so the file holds
 * one state however long the chain gets; what was overwritten in recent blocks stays in memory (StateHistory).
 */
export class NodeStore implements StateSource {
  readonly #source: CheckedSource;
  readonly #nodes = new Generations<string>(NODE_CACHE_BYTES_MAX, weighNode);
  readonly #codes = new Lru<string, Uint8Array>({ entriesMax: CODE_CACHE_CONTRACTS_MAX });
  readonly #history = new StateHistory();
  /** Of the newest state, so that reading a slot again walks no trie. */
  readonly #slots = new Generations<string>(SLOT_CACHE_SLOTS_MAX);
  #head: StateView;

  /** `root` is that of the newest state; without it there is none yet. */
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
    const key = toText(codeHash);
    const cached = this.#codes.get(key);
    if (cached !== undefined) return cached;
    const stored = this.#source.findCode(codeHash);
    this.#codes.set(key, stored);
    return stored;
  }

  /** A node as memory has it, if it fits the hash. */
  recall(key: string, hash: Uint8Array): Uint8Array | undefined {
    const node = this.#nodes.get(key);
    return fitting(node === undefined ? undefined : fromText(node), hash);
  }

  /** The same for code. */
  recallCode(codeHash: Uint8Array): Uint8Array | undefined {
    return fitting(this.#codes.get(toBuffer(codeHash).toString("latin1")), codeHash);
  }

  /** The state after the newest block. It stands for that block only: ask again after the next. */
  head(): StateView {
    return this.#head;
  }

  /** The state after an earlier block; undefined when it is no longer kept. */
  findAt({ number, stateRoot }: Pick<Header, "number" | "stateRoot">): StateView | undefined {
    const overwritten = this.#history.findSince(number);
    return overwritten === undefined ? undefined : createPastView(this, stateRoot, overwritten);
  }

  /** What the blocks after one overwrote, for another thread; all that is kept without it. */
  shareHistory(after: bigint | undefined): SharedLayer[] {
    return this.#history.share(after);
  }

  /** Takes over the changes of a block that is committed. */
  apply(blockNumber: bigint, { root, nodes, overwritten, storage }: AppliedChanges): void {
    this.#history.add(blockNumber, overwritten);
    nodes.forEach((node, key) => {
      if (node === undefined) this.#nodes.delete(key);
      else this.#nodes.set(key, node);
    });
    storage.forEach((slots, address) => {
      slots.forEach((value, slot) => this.#slots.set(address + slot, toText(value)));
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
