import { toBuffer } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { keccakInto } from "../keccak/portable-keccak.ts";
import { fromLatin1, toLatin1 } from "../latin1.ts";
import { listBytes, RlpWriter, stringBytes } from "../rlp/rlp-writer.ts";
import { INLINE_BYTES_MAX, toPathString } from "./encode.ts";
import { BRANCH_ITEMS, HASH_BYTES } from "./node.ts";
import { groupByNibble, type TrieChange } from "./update.ts";

const EMPTY_STRING = 0x80;
const HASH_PREFIX = EMPTY_STRING + HASH_BYTES;
const LIST_OFFSET = 0xc0;
/** Longest payload, in bytes, whose length fits into the first byte of its RLP header. */
const SHORT_BYTES_MAX = 55;
const BRANCH_CHILDREN = BRANCH_ITEMS - 1;
/** Maximum number of branches whose child paths are cached, about 1 KiB each. */
const branchPathsMax = 8_192;

/** A `NodeReader` that returns nodes as latin1 text. */
export type NodeTextReader = (path: string, hash?: Uint8Array) => string | undefined;

/**
 * Replaces the values of existing keys: copies the nodes on the paths of these keys and exchanges the hashes in the copies, without decoding a node. The paths
 * that `read` gets begin with `prefix`. Nodes are latin1 text, as in the caches.
 * Returns undefined if a change adds or removes a key, or if a node on a path is embedded in its parent before or after the change: use `updateTrie` then.
 */
export function replaceInTrie(
  read: NodeTextReader,
  changes: readonly TrieChange[],
  { prefix = "" }: { readonly prefix?: string } = {},
): TrieReplacement | undefined {
  const replacement = new Replacement(read, prefix.length);
  const root = replacement.replace({ path: prefix, changes });
  return root === undefined
    ? undefined
    : { root: keccak256(root), nodes: replacement.nodes, before: replacement.before };
}

/** What {@link replaceInTrie} changed. All paths begin with its `prefix`. */
export interface TrieReplacement {
  readonly root: Uint8Array;
  /** Stored nodes that changed, by path. */
  readonly nodes: Map<string, string>;
  /** The earlier nodes at exactly those paths. */
  readonly before: Map<string, string>;
}

class Replacement {
  readonly nodes = new Map<string, string>();
  readonly before = new Map<string, string>();
  readonly #read: NodeTextReader;
  readonly #prefixLength: number;

  constructor(read: NodeTextReader, prefixLength: number) {
    this.#read = read;
    this.#prefixLength = prefixLength;
  }

  /** The node at a path after the changes; undefined if they need `updateTrie`. */
  replace({ path, changes, hash }: Place): Uint8Array | undefined {
    const before = this.#read(path, hash);
    if (before === undefined) return undefined;
    const node = fromLatin1(before);
    const after = isBranch(node)
      ? this.#replaceInBranch(node, { path, changes })
      : this.#replaceInPath(node, { path, changes });
    if (after === undefined) return undefined;
    const text = toLatin1(after);
    if (text === before) return after;
    this.nodes.set(path, text);
    this.before.set(path, before);
    return after;
  }

  /** Changes `node`, which is a copy. */
  #replaceInBranch(node: Buffer, { path, changes }: Place): Buffer | undefined {
    const depth = path.length - this.#prefixLength;
    const [first] = changes;
    if (first !== undefined && changes.length === 1) {
      const nibble = first.nibbles[depth] ?? 0;
      return this.#replaceChild(node, childAt(node, nibble), { path: toChildPath(path, nibble), changes })
        ? node
        : undefined;
    }
    for (const [nibble, group] of groupByNibble(changes, depth)) {
      const place = { path: toChildPath(path, nibble), changes: group };
      if (!this.#replaceChild(node, childAt(node, nibble), place)) return undefined;
    }
    return node;
  }

  /** Changes an extension in place, since `node` is a copy. For a leaf, returns a new node. */
  #replaceInPath(node: Buffer, { path, changes }: Place): Buffer | undefined {
    const from = path.length - this.#prefixLength;
    const packedAt = headerLength(node, 0);
    const packed = packedAt + headerLength(node, packedAt);
    const contentAt = itemEnd(node, packedAt);
    const to = from + 2 * (contentAt - packed) - (isOdd(node, packed) ? 1 : 2);
    const [first] = changes;
    if (first === undefined || !changes.every(({ nibbles }) => hasPath(nibbles, from, { node, packed, to })))
      return undefined;
    if (isLeaf(node, packed)) {
      return changes.length > 1 ? undefined : replaceLeaf(node.subarray(packedAt, contentAt), first);
    }
    const place = { path: path + toPathString(first.nibbles.subarray(from, to)), changes };
    return this.#replaceChild(node, contentAt, place) ? node : undefined;
  }

  /** Changes the child whose hash begins at offset `at` of `parent`, then writes the child's new hash there. False if this needs `updateTrie`. */
  #replaceChild(parent: Buffer, at: number, { path, changes }: Place): boolean {
    if (parent[at] !== HASH_PREFIX) return false;
    const hash = parent.subarray(at + 1, at + 1 + HASH_BYTES);
    const child = this.replace({ path, changes, hash });
    if (child === undefined) return false;
    keccakInto(parent, at + 1, child);
    return true;
  }
}

interface Place {
  readonly path: string;
  readonly changes: readonly TrieChange[];
  /** The node's hash in its parent; undefined for the root. */
  readonly hash?: Uint8Array;
}

/**
 * A leaf with the new value; `path` is the encoded path of the old leaf. Undefined if the value is removed, or the leaf is too short to be stored separately.
 */
function replaceLeaf(path: Uint8Array, { value }: TrieChange): Buffer | undefined {
  if (value === undefined) return undefined;
  const payload = path.length + stringBytes(value);
  const bytes = listBytes(payload);
  if (bytes <= INLINE_BYTES_MAX) return undefined;
  const writer = new RlpWriter(Buffer.allocUnsafe(bytes));
  writer.list(payload);
  writer.raw(path);
  writer.string(value);
  return toBuffer(writer.bytes);
}

interface PackedPath {
  readonly node: Buffer;
  /** Offset of the path's hex-prefix encoding in `node`. */
  readonly packed: number;
  /** Where the node's path ends in the key, in nibbles. */
  readonly to: number;
}

/** Whether a key has the node's path at nibbles `from` to `to`. */
function hasPath(nibbles: Uint8Array, from: number, { node, packed, to }: PackedPath): boolean {
  if (to > nibbles.length) return false;
  // Index of the path's first nibble in the packed path. Nibble 0 is the flag, and nibble 1 padding if the length is even.
  let half = isOdd(node, packed) ? 1 : 2;
  for (let at = from; at < to; at += 1, half += 1) {
    const byte = node[packed + (half >> 1)] ?? 0;
    if (nibbles[at] !== ((half & 1) === 0 ? byte >> 4 : byte & 0x0f)) return false;
  }
  return true;
}

function isOdd(node: Buffer, packed: number): boolean {
  return ((node[packed] ?? 0) & 0x10) !== 0;
}

function isLeaf(node: Buffer, packed: number): boolean {
  return ((node[packed] ?? 0) & 0x20) !== 0;
}

/** Whether a node is a branch: only branches have more than two items. The nodes are ours, so they are well formed. */
function isBranch(node: Buffer): boolean {
  return itemEnd(node, itemEnd(node, headerLength(node, 0))) < node.length;
}

/** Offset of a child in its branch. */
function childAt(node: Buffer, index: number): number {
  let at = headerLength(node, 0);
  for (let skipped = 0; skipped < index && skipped < BRANCH_CHILDREN; skipped += 1) {
    const first = node[at];
    if (first === HASH_PREFIX) at += 1 + HASH_BYTES;
    else if (first === EMPTY_STRING) at += 1;
    else at = itemEnd(node, at);
  }
  return at;
}

/**
 * Paths of children by the path of their branch. Cached, because making a path string and looking it up in each map take longer than the Keccak-256 of the
 * node.
 */
const childPaths = new Map<string, (string | undefined)[]>();

function toChildPath(path: string, nibble: number): string {
  const children = childPaths.get(path) ?? addBranch(path);
  const known = children[nibble];
  if (known !== undefined) return known;
  const child = path + String.fromCharCode(nibble);
  children[nibble] = child;
  return child;
}

/** Adds a branch, without child paths yet, to the cache. A full cache is cleared first: the paths in use come back. */
function addBranch(path: string): (string | undefined)[] {
  if (childPaths.size >= branchPathsMax) childPaths.clear();
  const children = Array.from<string | undefined>({ length: BRANCH_CHILDREN });
  childPaths.set(path, children);
  return children;
}

function itemEnd(node: Buffer, at: number): number {
  return at + headerLength(node, at) + payloadLength(node, at);
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
