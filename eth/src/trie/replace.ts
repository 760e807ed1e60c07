import { toBuffer } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { encodeRlp } from "../rlp/encode-rlp.ts";
import { INLINE_BYTES_MAX, toPathString } from "./encode.ts";
import { BRANCH_ITEMS, HASH_BYTES } from "./node.ts";
import { packPath, unpackPath } from "./path.ts";
import { groupByNibble, type NodeReader, type TrieChange, type TrieUpdate } from "./update.ts";

const EMPTY_STRING = 0x80;
const HASH_PREFIX = EMPTY_STRING + HASH_BYTES;
const LIST_OFFSET = 0xc0;
/** Longest payload whose length stands in the first byte of its RLP, in bytes. */
const SHORT_BYTES_MAX = 55;

/**
 * Puts other values under keys that a trie has: each node on the way is copied and gets other hashes, without being decoded. Undefined
 * where a key is absent or goes, or where a node is held by its parent: then it takes `updateTrie`.
 */
export function replaceInTrie(read: NodeReader, changes: readonly TrieChange[]): TrieUpdate | undefined {
  const replacement = new Replacement(read);
  const root = replacement.replace({ path: "", changes });
  return root === undefined
    ? undefined
    : { root: keccak256(root), nodes: replacement.nodes, before: replacement.before };
}

class Replacement {
  readonly nodes = new Map<string, Uint8Array>();
  readonly before = new Map<string, Uint8Array>();
  readonly #read: NodeReader;

  constructor(read: NodeReader) {
    this.#read = read;
  }

  /** The node under a path as it is afterwards. */
  replace({ path, changes, hash }: Place): Uint8Array | undefined {
    const encoded = this.#read(path, hash);
    if (encoded === undefined) return undefined;
    const before = toBuffer(encoded);
    const items = itemPlaces(before);
    const after =
      items.length - 1 === BRANCH_ITEMS
        ? this.#replaceInBranch(before, items, { path, changes })
        : this.#replaceInPath(before, items, { path, changes });
    if (after === undefined) return undefined;
    if (before.equals(after)) return before;
    this.nodes.set(path, after);
    this.before.set(path, before);
    return after;
  }

  #replaceInBranch(before: Buffer, items: readonly number[], { path, changes }: Place): Buffer | undefined {
    const after = Buffer.from(before);
    for (const [nibble, group] of groupByNibble(changes, path.length)) {
      const isReplaced = this.#replaceChild(after, items[nibble] ?? 0, {
        path: path + String.fromCharCode(nibble),
        changes: group,
      });
      if (!isReplaced) return undefined;
    }
    return after;
  }

  #replaceInPath(before: Buffer, items: readonly number[], { path, changes }: Place): Buffer | undefined {
    const unpacked = unpackPath(payload(before, items, 0));
    if (unpacked === undefined) return undefined;
    const { path: rest, isLeaf } = unpacked;
    const isOnPath = changes.every(({ nibbles }) => startsWith(nibbles.subarray(path.length), rest));
    if (!isOnPath) return undefined;
    if (isLeaf) return replaceLeaf(rest, changes);
    const after = Buffer.from(before);
    const place = { path: path + toPathString(rest), changes };
    return this.#replaceChild(after, items[1] ?? 0, place) ? after : undefined;
  }

  /** Whether the hash that stands at `at` could be exchanged. */
  #replaceChild(parent: Buffer, at: number, place: Place): boolean {
    if (parent[at] !== HASH_PREFIX) return false;
    const hash = parent.subarray(at + 1, at + 1 + HASH_BYTES);
    const child = this.replace({ ...place, hash });
    if (child === undefined) return false;
    parent.set(keccak256(child), at + 1);
    return true;
  }
}

interface Place {
  readonly path: string;
  readonly changes: readonly TrieChange[];
  /** As the parent names it; undefined for the root. */
  readonly hash?: Uint8Array;
}

function replaceLeaf(rest: Uint8Array, [change, other]: readonly TrieChange[]): Buffer | undefined {
  if (change?.value === undefined || other !== undefined) return undefined;
  const encoded = encodeRlp([packPath(rest, true), change.value]);
  return encoded.length <= INLINE_BYTES_MAX ? undefined : toBuffer(encoded);
}

function startsWith(nibbles: Uint8Array, start: Uint8Array): boolean {
  return start.every((nibble, index) => nibbles[index] === nibble);
}

/** Where each item of a node's list begins, and where the last one ends. The node is one of ours, so it is well formed. */
function itemPlaces(node: Buffer): number[] {
  const places: number[] = [];
  let at = headerLength(node, 0);
  while (at < node.length) {
    places.push(at);
    at += headerLength(node, at) + payloadLength(node, at);
  }
  places.push(node.length);
  return places;
}

function payload(node: Buffer, items: readonly number[], index: number): Buffer {
  const at = items[index] ?? 0;
  return node.subarray(at + headerLength(node, at), items[index + 1]);
}

function headerLength(node: Buffer, at: number): number {
  const first = node[at] ?? 0;
  if (first < EMPTY_STRING) return 0;
  const length = first - (first < LIST_OFFSET ? EMPTY_STRING : LIST_OFFSET);
  return length <= SHORT_BYTES_MAX ? 1 : 1 + length - SHORT_BYTES_MAX;
}

function payloadLength(node: Buffer, at: number): number {
  const first = node[at] ?? 0;
  if (first < EMPTY_STRING) return 1;
  const length = first - (first < LIST_OFFSET ? EMPTY_STRING : LIST_OFFSET);
  return length <= SHORT_BYTES_MAX ? length : node.readUIntBE(at + 1, length - SHORT_BYTES_MAX);
}
