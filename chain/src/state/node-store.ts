import { Lru } from "../lib/lru.ts";
import { toBuffer } from "../lib/bytes.ts";
import { CODE_CACHE_CONTRACTS_MAX, NODE_CACHE_BYTES_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";
import { createPastView } from "./past-view.ts";
import { type SharedLayer, StateHistory } from "./state-history.ts";
import { type StateSource, StateView } from "./state-view.ts";

/** The durable side of the state. */
export interface StateDatabase {
  readNode(key: string): Uint8Array | undefined;
  readCode(codeHash: Uint8Array): Uint8Array | undefined;
}

const NODE_OVERHEAD_BYTES = 128;

/**
 * Trie nodes of the newest state, one for each place in the tries. A new node overwrites the old one, so the file holds
 * one state however long the chain gets; what was overwritten in recent blocks stays in memory (StateHistory).
 */
export class NodeStore implements StateSource {
  readonly #database: StateDatabase;
  readonly #nodes = new Lru<string, Uint8Array>({ weightMax: NODE_CACHE_BYTES_MAX });
  readonly #codes = new Lru<string, Uint8Array>({ entriesMax: CODE_CACHE_CONTRACTS_MAX });
  readonly #history = new StateHistory();
  #head = new StateView(this);

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  findNode(key: string): Uint8Array | undefined {
    const cached = this.#nodes.get(key);
    if (cached !== undefined) return cached;
    const stored = this.#database.readNode(key);
    if (stored !== undefined) this.#cache(key, stored);
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

  /** What the changes are about to overwrite. */
  before(changes: NodeChanges): NodeChanges {
    const before = new Map<string, Uint8Array | undefined>();
    for (const key of changes.keys()) before.set(key, this.findNode(key));
    return before;
  }

  /** Takes over the changes of a block that is committed. */
  apply(blockNumber: bigint, changes: NodeChanges, before: NodeChanges): void {
    this.#history.add(blockNumber, before);
    this.#head = new StateView(this);
    for (const [key, node] of changes) {
      if (node === undefined) this.#nodes.delete(key);
      else this.#cache(key, node);
    }
  }

  #cache(key: string, node: Uint8Array): void {
    this.#nodes.set(key, node, key.length + node.length + NODE_OVERHEAD_BYTES);
  }
}
