import { MalformedError } from "../malformed-error.ts";
import { decodeRlp } from "../rlp/decode-rlp.ts";
import type { RlpItem } from "../rlp/encode-rlp.ts";
import { unpackPath } from "./path.ts";

/** A child that is stored by itself: its parent contains only its hash. */
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
  if (raw instanceof Uint8Array) throw new MalformedError("a trie node is not a list");
  if (raw.length === BRANCH_ITEMS) {
    return { kind: "branch", children: raw.slice(0, BRANCH_ITEMS - 1).map(fromRawChild) };
  }
  const [packed, content] = raw;
  if (!(packed instanceof Uint8Array) || content === undefined) throw new MalformedError("a trie node is malformed");
  const unpacked = unpackPath(packed);
  if (unpacked === undefined) throw new MalformedError("a trie node has a malformed path");
  const { path, isLeaf } = unpacked;
  if (!isLeaf) return { kind: "extension", path, child: requireChild(fromRawChild(content)) };
  if (!(content instanceof Uint8Array)) throw new MalformedError("a trie leaf is malformed");
  return { kind: "leaf", path, value: content };
}

function fromRawChild(raw: RlpItem): ChildNode | undefined {
  if (!(raw instanceof Uint8Array)) return fromRaw(raw);
  if (raw.length === 0) return undefined;
  if (raw.length !== HASH_BYTES) throw new MalformedError("a trie node has a malformed child");
  return { kind: "hash", hash: raw };
}

function requireChild(child: ChildNode | undefined): ChildNode {
  if (child === undefined) throw new MalformedError("a trie extension has no child");
  return child;
}
