import { fromInteger } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { encodeRlp } from "../rlp/encode-rlp.ts";
import type { NodeSink } from "./encode.ts";
import { toNibbles } from "./path.ts";
import { proveTrie } from "./read.ts";
import { buildTrie } from "./update.ts";

/** Root of a trie with nothing in it: keccak256(RLP("")). */
export const emptyTrieRoot: Uint8Array = keccak256(Uint8Array.of(0x80));

/** Root of the trie that maps each index to its value, like the transactions root and the receipts root of a block header. `sink` receives the nodes. */
export function orderedRoot(values: readonly Uint8Array[], sink?: NodeSink): Uint8Array {
  const entries = values.map((value, index) => ({ nibbles: toNibbles(keyOf(index)), value }));
  return buildTrie(entries, sink) ?? emptyTrieRoot;
}

/** A trie that maps each index to its value, and proves its values. */
export class OrderedTrie {
  readonly root: Uint8Array;
  readonly #nodes = new Map<string, Uint8Array>();

  constructor(values: readonly Uint8Array[]) {
    this.root = orderedRoot(values, (path, node) => this.#nodes.set(path, node));
  }

  /** Nodes from the root to the leaf of the value at `index`, which must exist. */
  prove(index: number): readonly Uint8Array[] {
    return proveTrie((path) => this.#nodes.get(path), keyOf(index));
  }
}

function keyOf(index: number): Uint8Array {
  return encodeRlp(fromInteger(index));
}
