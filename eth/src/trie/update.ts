import { encodeTrie, type NodeSink, toPathString } from "./encode.ts";
import { type ChildNode, decodeNode, type ExtensionNode, type TrieNode } from "./node.ts";
import { sharedLength } from "./path.ts";

/** Sets a key's value, or removes the key if the value is undefined. No key may be the prefix of another. */
export interface TrieChange {
  readonly nibbles: Uint8Array;
  readonly value: Uint8Array | undefined;
}

/** Returns the encoded node at a path; undefined if none is stored. `hash` is the node's hash in its parent; undefined for the root. */
export type NodeReader = (path: string, hash?: Uint8Array) => Uint8Array | undefined;

export interface TrieUpdate {
  /** Undefined if the trie is empty now. */
  readonly root: Uint8Array | undefined;
  /** Stored nodes that changed, by path; undefined for a removed node. */
  readonly nodes: ReadonlyMap<string, Uint8Array | undefined>;
  /** The nodes that were read, by path. They include the earlier form of each changed node, unless that node is new. */
  readonly before: ReadonlyMap<string, Uint8Array>;
}

const BRANCH_CHILDREN = 16;

/** Applies changes to the trie whose nodes `read` returns. */
export function updateTrie(read: NodeReader, changes: readonly TrieChange[]): TrieUpdate {
  const updater = new TrieUpdater(read);
  return updater.run(changes);
}

/** The root hash of a trie of these entries; undefined if there are none. `sink` receives the nodes. */
export function buildTrie(entries: readonly TrieChange[], sink: NodeSink = () => undefined): Uint8Array | undefined {
  const root = buildNode(entries, 0);
  return root === undefined ? undefined : encodeTrie(root, sink);
}

class TrieUpdater {
  readonly #read: NodeReader;
  readonly #loaded = new Map<string, Uint8Array>();

  constructor(read: NodeReader) {
    this.#read = read;
  }

  run(changes: readonly TrieChange[]): TrieUpdate {
    const stored = this.#read("");
    const after = this.#apply(stored === undefined ? undefined : this.#load("", stored), changes, "");
    const nodes = new Map<string, Uint8Array | undefined>();
    for (const path of this.#loaded.keys()) nodes.set(path, undefined);
    const before = this.#loaded;
    if (after === undefined) return { root: undefined, nodes, before };
    const root = encodeTrie(after, (path, encoded) => this.#keep(nodes, path, encoded));
    return { root, nodes, before };
  }

  /** Adds a node to the changed ones, unless it has the bytes that were read at its path. */
  #keep(nodes: Map<string, Uint8Array | undefined>, path: string, encoded: Uint8Array): void {
    const before = this.#loaded.get(path);
    if (before !== undefined && Buffer.compare(before, encoded) === 0) nodes.delete(path);
    else nodes.set(path, encoded);
  }

  #load(path: string, encoded: Uint8Array): TrieNode {
    this.#loaded.set(path, encoded);
    return decodeNode(encoded);
  }

  #resolve(node: ChildNode, path: string): TrieNode {
    if (node.kind !== "hash") return node;
    const encoded = this.#read(path, node.hash);
    if (encoded === undefined) throw new Error("missing trie node");
    return this.#load(path, encoded);
  }

  #apply(node: TrieNode | undefined, changes: readonly TrieChange[], path: string): TrieNode | undefined {
    if (changes.length === 0) return node;
    if (node === undefined) return buildNode(changes, path.length);
    if (node.kind === "branch") return this.#applyToBranch(node.children, changes, path);
    if (node.kind === "extension") return this.#applyToExtension(node, changes, path);
    return buildNode(withLeaf(node, changes, path), path.length);
  }

  #applyToBranch(
    before: readonly (ChildNode | undefined)[],
    changes: readonly TrieChange[],
    path: string,
  ): TrieNode | undefined {
    const children = [...before];
    for (const [index, group] of groupByNibble(changes, path.length)) {
      const childPath = path + String.fromCharCode(index);
      const child = children[index];
      children[index] = this.#apply(
        child === undefined ? undefined : this.#resolve(child, childPath),
        group,
        childPath,
      );
    }
    return this.#collapse(children, path);
  }

  /** Merges a branch that has one child left with that child. */
  #collapse(children: readonly (ChildNode | undefined)[], path: string): TrieNode | undefined {
    const present = children.findIndex((child) => child !== undefined);
    if (present === -1) return undefined;
    const only = children.findLastIndex((child) => child !== undefined) === present ? children[present] : undefined;
    if (only === undefined) return { kind: "branch", children };
    return withPrefix(Uint8Array.of(present), this.#resolve(only, path + String.fromCharCode(present)));
  }

  #applyToExtension(node: ExtensionNode, changes: readonly TrieChange[], path: string): TrieNode | undefined {
    const relevant = changes.filter(
      ({ nibbles, value }) =>
        value !== undefined || sharedLength(nibbles.subarray(path.length), node.path) === node.path.length,
    );
    if (relevant.length === 0) return node;
    const shared = Math.min(...relevant.map(({ nibbles }) => sharedLength(nibbles.subarray(path.length), node.path)));
    const prefix = node.path.subarray(0, shared);
    const innerPath = path + toPathString(prefix);
    const inner =
      shared === node.path.length
        ? this.#apply(this.#resolve(node.child, innerPath), relevant, innerPath)
        : this.#applyToBranch(splitExtension(node, shared), relevant, innerPath);
    return inner === undefined ? undefined : withPrefix(prefix, inner);
  }
}

/** The children of the branch that replaces nibble `at` of an extension's path. */
function splitExtension(node: ExtensionNode, at: number): (ChildNode | undefined)[] {
  const children: (ChildNode | undefined)[] = Array.from({ length: BRANCH_CHILDREN });
  const rest = node.path.subarray(at + 1);
  children[node.path[at] ?? 0] = rest.length === 0 ? node.child : { kind: "extension", path: rest, child: node.child };
  return children;
}

function withLeaf(
  leaf: { path: Uint8Array; value: Uint8Array },
  changes: readonly TrieChange[],
  path: string,
): TrieChange[] {
  const nibbles = Buffer.concat([Buffer.from(path, "latin1"), leaf.path]);
  const isReplaced = changes.some((change) => Buffer.compare(change.nibbles, nibbles) === 0);
  return isReplaced ? [...changes] : [...changes, { nibbles, value: leaf.value }];
}

function buildNode(entries: readonly TrieChange[], depth: number): TrieNode | undefined {
  const present = entries.filter(({ value }) => value !== undefined);
  const first = present[0];
  if (first?.value === undefined) return undefined;
  if (present.length === 1) return { kind: "leaf", path: first.nibbles.subarray(depth), value: first.value };
  const shared = Math.min(
    ...present.map(({ nibbles }) => sharedLength(nibbles.subarray(depth), first.nibbles.subarray(depth))),
  );
  const children: (ChildNode | undefined)[] = Array.from({ length: BRANCH_CHILDREN });
  for (const [index, group] of groupByNibble(present, depth + shared)) {
    children[index] = buildNode(group, depth + shared + 1);
  }
  return withPrefix(first.nibbles.subarray(depth, depth + shared), { kind: "branch", children });
}

/** Groups changes by nibble `at` of their keys. */
export function groupByNibble(changes: readonly TrieChange[], at: number): Map<number, TrieChange[]> {
  const groups = new Map<number, TrieChange[]>();
  for (const change of changes) {
    const nibble = change.nibbles[at] ?? 0;
    const group = groups.get(nibble);
    if (group === undefined) groups.set(nibble, [change]);
    else group.push(change);
  }
  return groups;
}

function withPrefix(prefix: Uint8Array, node: TrieNode): TrieNode {
  if (prefix.length === 0) return node;
  if (node.kind === "branch") return { kind: "extension", path: prefix, child: node };
  return { ...node, path: Buffer.concat([prefix, node.path]) };
}
