import { emptyBytes } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { encodeRlp, type RlpItem } from "../rlp/encode-rlp.ts";
import type { ChildNode, TrieNode } from "./node.ts";
import { packPath } from "./path.ts";

/** The form of a child inside its parent: its hash, or the whole child if its encoding is shorter than a hash. */
type Reference = RlpItem;

/** Receives each separately stored node, with its path from the root. */
export type NodeSink = (path: string, encoded: Uint8Array) => void;

/** Longest node, in bytes, that its parent contains whole. The parent contains only the hash of a longer node. */
export const INLINE_BYTES_MAX = 31;

/** Encodes a trie, gives each separately stored node to `sink`, and returns the root hash. */
export function encodeTrie(root: TrieNode, sink: NodeSink): Uint8Array {
  const encoded = encodeRlp(toItems(root, "", sink));
  sink("", encoded);
  return keccak256(encoded);
}

function toItems(node: TrieNode, path: string, sink: NodeSink): readonly Reference[] {
  if (node.kind === "leaf") return [packPath(node.path, true), node.value];
  if (node.kind === "extension") {
    return [packPath(node.path, false), toReference(node.child, path + toPathString(node.path), sink)];
  }
  const children = Array.from(node.children, (child, index) =>
    child === undefined ? emptyBytes : toReference(child, path + String.fromCharCode(index), sink),
  );
  return [...children, emptyBytes];
}

function toReference(node: ChildNode, path: string, sink: NodeSink): Reference {
  if (node.kind === "hash") return node.hash;
  const items = toItems(node, path, sink);
  const encoded = encodeRlp(items);
  if (encoded.length <= INLINE_BYTES_MAX) return items;
  sink(path, encoded);
  return keccak256(encoded);
}

/** A path as a string with one character (code 0 to 15) per nibble: it can be a map's key and is cheap to cut. */
export function toPathString(path: Uint8Array): string {
  return String.fromCharCode(...path);
}
