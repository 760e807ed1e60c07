import { Generations } from "../lib/generations.ts";
import { Lru } from "../lib/lru.ts";
import { toBuffer } from "../lib/bytes.ts";
import { CODE_CACHE_CONTRACTS_MAX, NODE_CACHE_BYTES_MAX, SLOT_CACHE_SLOTS_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";
import { createPastView } from "./past-view.ts";
import { type SharedLayer, StateHistory } from "./state-history.ts";
import { type StateSource, StateView } from "./state-view.ts";

/** The durable side of the state. */
export interface StateDatabase {
  readNode(key: string): Uint8Array | undefined;
  readCode(codeHash: Uint8Array): Uint8Array | undefined;
}

/** Of an entry, with its key. */
const NODE_OVERHEAD_BYTES = 192;

/** What a committed block changed. */
export interface AppliedChanges {
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
  readonly #database: StateDatabase;
  readonly #nodes = new Generations<Uint8Array>(NODE_CACHE_BYTES_MAX);
  readonly #codes = new Lru<string, Uint8Array>({ entriesMax: CODE_CACHE_CONTRACTS_MAX });
  readonly #history = new StateHistory();
  /** Of the newest state, so that reading a slot again walks no trie. */
  readonly #slots = new Generations<Uint8Array>(SLOT_CACHE_SLOTS_MAX);
  #head = new StateView(this, this.#slots);

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  findNode(key: string): Uint8Array | undefined {
    const cached = this.#nodes.get(key, weighNode);
    if (cached !== undefined) return cached;
    const read = this.#database.readNode(key);
    if (read === undefined) return undefined;
    const stored = Buffer.from(read); // into shared memory: a piece of its own takes 200 bytes more
    this.#cache(key, stored);
    return stored;
  }

  findCode(codeHash: Uint8Array): Uint8Array | undefined {
    const key = toBuffer(codeHash).toString("latin1");
    const cached = this.#codes.get(key);
    if (cached !== undefined) return cached;
    const stored = this.#database.readCode(codeHash);
    if (stored !== undefined) this.#codes.set(key, stored);
    return stored;
  }

  /** The state after the newest block. It stands for that block only: ask again after the next. */
  head(): StateView {
    return this.#head;
  }

  /** The state after an earlier block; undefined when it is no longer kept. */
  findAt(blockNumber: bigint): StateView | undefined {
    const overwritten = this.#history.findSince(blockNumber);
    return overwritten === undefined ? undefined : createPastView(this, overwritten);
  }

  /** What the blocks after one overwrote, for another thread; all that is kept without it. */
  shareHistory(after: bigint | undefined): SharedLayer[] {
    return this.#history.share(after);
  }

  /** Takes over the changes of a block that is committed. */
  apply(blockNumber: bigint, { nodes, overwritten, storage }: AppliedChanges): void {
    this.#history.add(blockNumber, overwritten);
    for (const [key, node] of nodes) {
      if (node === undefined) this.#nodes.delete(key);
      else this.#cache(key, node);
    }
    for (const [address, slots] of storage) {
      for (const [slot, value] of slots) this.#slots.set(address + slot, value);
    }
    this.#head = new StateView(this, this.#slots);
  }

  #cache(key: string, node: Uint8Array): void {
    this.#nodes.set(key, node, weighNode(node));
  }
}

function weighNode(node: Uint8Array): number {
  return node.length + NODE_OVERHEAD_BYTES;
}
