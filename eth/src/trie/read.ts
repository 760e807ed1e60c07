import { isSameBytes } from "../bytes.ts";
import { toPathString } from "./encode.ts";
import { type ChildNode, decodeNode, type TrieNode } from "./node.ts";
import { sharedLength, toNibbles } from "./path.ts";
import type { NodeReader } from "./update.ts";

/** The value under a key, or undefined. */
export function readTrie(read: NodeReader, key: Uint8Array): Uint8Array | undefined {
  return walk(read, key, () => undefined);
}

/** The encoded nodes from the root to a key, as `eth_getProof` returns them; for an absent key, the nodes that prove its absence. */
export function proveTrie(read: NodeReader, key: Uint8Array): Uint8Array[] {
  const proof: Uint8Array[] = [];
  walk(read, key, (encoded) => proof.push(encoded));
  return proof;
}

function walk(read: NodeReader, key: Uint8Array, visit: (encoded: Uint8Array) => void): Uint8Array | undefined {
  const nibbles = toNibbles(key);
  const root = read("");
  if (root === undefined) return undefined;
  visit(root);
  let node: TrieNode = decodeNode(root);
  let depth = 0;
  while (node.kind !== "leaf") {
    const step = childOf(node, nibbles, depth);
    if (step === undefined) return undefined;
    depth += step.length;
    node = resolve(step.child, toPathString(nibbles.subarray(0, depth)), { read, visit });
  }
  return isSameBytes(node.path, nibbles.subarray(depth)) ? node.value : undefined;
}

function childOf(
  node: TrieNode,
  nibbles: Uint8Array,
  depth: number,
): { readonly child: ChildNode; readonly length: number } | undefined {
  if (node.kind === "branch") {
    const child = node.children[nibbles[depth] ?? 0];
    return child === undefined ? undefined : { child, length: 1 };
  }
  if (node.kind === "leaf" || sharedLength(nibbles.subarray(depth), node.path) !== node.path.length) return undefined;
  return { child: node.child, length: node.path.length };
}

function resolve(
  child: ChildNode,
  path: string,
  { read, visit }: { readonly read: NodeReader; readonly visit: (encoded: Uint8Array) => void },
): TrieNode {
  if (child.kind !== "hash") return child;
  const encoded = read(path, child.hash);
  if (encoded === undefined) throw new Error("missing trie node");
  visit(encoded);
  return decodeNode(encoded);
}
