import { decodeRlp, type RlpItem } from "../../lib/rlp.ts";

/** A child that is stored by itself: only its hash stands in the parent. */
export interface HashNode {
  readonly kind: "hash";
  readonly hash: Uint8Array;
}

export interface LeafNode {
  readonly kind: "leaf";
  readonly path: Uint8Array;
  readonly value: Uint8Array;
}

export interface ExtensionNode {
  readonly kind: "extension";
  readonly path: Uint8Array;
  readonly child: ChildNode;
}

export interface BranchNode {
  readonly kind: "branch";
  readonly children: readonly (ChildNode | undefined)[];
}

export type TrieNode = LeafNode | ExtensionNode | BranchNode;
export type ChildNode = TrieNode | HashNode;

export const BRANCH_ITEMS = 17;
export const HASH_BYTES = 32;

export function decodeNode(encoded: Uint8Array): TrieNode {
  return fromRaw(decodeRlp(encoded));
}

function fromRaw(raw: RlpItem): TrieNode {
  if (raw instanceof Uint8Array) throw new Error("A trie node is not a list.");
  if (raw.length === BRANCH_ITEMS) {
    return { kind: "branch", children: raw.slice(0, BRANCH_ITEMS - 1).map(fromRawChild) };
  }
  const [packed, content] = raw;
  if (!(packed instanceof Uint8Array) || content === undefined) throw new Error("A trie node is malformed.");
  const { path, isLeaf } = unpackPath(packed);
  if (!isLeaf) return { kind: "extension", path, child: presentChild(fromRawChild(content)) };
  if (!(content instanceof Uint8Array)) throw new Error("A trie leaf is malformed.");
  return { kind: "leaf", path, value: content };
}

function fromRawChild(raw: RlpItem): ChildNode | undefined {
  if (!(raw instanceof Uint8Array)) return fromRaw(raw);
  if (raw.length === 0) return undefined;
  if (raw.length !== HASH_BYTES) throw new Error("A trie node has a malformed child.");
  return { kind: "hash", hash: raw };
}

function presentChild(child: ChildNode | undefined): ChildNode {
  if (child === undefined) throw new Error("A trie extension has no child.");
  return child;
}

/** Half-bytes of a key, high half first. */
export function toNibbles(key: Uint8Array): Uint8Array {
  const nibbles = new Uint8Array(key.length * 2);
  for (const [index, byte] of key.entries()) {
    nibbles[index * 2] = byte >> 4;
    nibbles[index * 2 + 1] = byte & 0x0f;
  }
  return nibbles;
}

/** The hex-prefix encoding of a path (Yellow Paper, appendix C). */
export function packPath(path: Uint8Array, isLeaf: boolean): Uint8Array {
  const isOdd = path.length % 2 === 1;
  const packed = new Uint8Array((path.length >> 1) + 1);
  packed[0] = (isLeaf ? 0x20 : 0) | (isOdd ? 0x10 | (path[0] ?? 0) : 0);
  for (let from = isOdd ? 1 : 0, to = 1; from < path.length; from += 2, to += 1) {
    packed[to] = ((path[from] ?? 0) << 4) | (path[from + 1] ?? 0);
  }
  return packed;
}

export function unpackPath(packed: Uint8Array): { readonly path: Uint8Array; readonly isLeaf: boolean } {
  const nibbles = toNibbles(packed);
  const flag = nibbles[0] ?? 0;
  return { path: nibbles.subarray(flag % 2 === 1 ? 1 : 2), isLeaf: flag >= 2 };
}

/** How many half-bytes two paths have in common. */
export function sharedLength(left: Uint8Array, right: Uint8Array): number {
  const end = Math.min(left.length, right.length);
  let length = 0;
  while (length < end && left[length] === right[length]) length += 1;
  return length;
}
