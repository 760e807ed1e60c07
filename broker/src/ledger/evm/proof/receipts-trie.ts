import { toRlp } from "viem/utils";
import { integerBytes } from "../hex.ts";
import { keccak256 } from "../native-crypto.ts";

/** An entry with the rest of its key. */
interface Entry {
  readonly key: readonly number[];
  readonly value: Uint8Array;
}

/** A node with its children by nibble. */
interface TrieNode {
  readonly encoded: Uint8Array;
  /** Nibbles of the key that the node itself covers. */
  readonly skipped: number;
  readonly children: ReadonlyMap<number, TrieNode>;
}

const branchChildren = 16;
const oddFlag = 1;
const leafFlag = 2;

/**
 * The Merkle-Patricia trie of a block's receipts (Yellow Paper, appendix D). A receipt has 256 bytes of bloom, so no node is short enough to
 * be embedded in its parent.
 */
export class ReceiptsTrie {
  readonly root: Uint8Array;
  readonly #top: TrieNode;

  constructor(receipts: readonly Uint8Array[]) {
    this.#top = createNode(receipts.map((value, place) => ({ key: toNibbles(keyOf(place)), value })));
    this.root = keccak256(this.#top.encoded);
  }

  /** Nodes from the root to the leaf of the receipt at `index`, which must exist. */
  prove(index: number): readonly Uint8Array[] {
    const nodes: Uint8Array[] = [];
    const key = toNibbles(keyOf(index));
    let place = 0;
    for (let node: TrieNode | undefined = this.#top; node !== undefined; place += 1) {
      nodes.push(node.encoded);
      place += node.skipped;
      node = node.children.get(key[place] ?? -1);
    }
    return nodes;
  }
}

function createNode(entries: readonly Entry[]): TrieNode {
  const [first] = entries;
  if (first !== undefined && entries.length === 1) {
    const items = [pack(first.key, leafFlag), first.value];
    return { encoded: toRlp(items, "bytes"), skipped: first.key.length, children: new Map() };
  }
  const shared = sharedLength(entries);
  return first !== undefined && shared > 0 ? createExtension(entries, shared) : createBranch(entries);
}

/** An extension for the nibbles that all keys share, with the branch below it. */
function createExtension(entries: readonly Entry[], shared: number): TrieNode {
  const branch = createBranch(cut(entries, shared));
  const [nibble = 0, ...path] = entries[0]?.key.slice(0, shared) ?? [];
  const encoded = toRlp([pack([nibble, ...path], 0), keccak256(branch.encoded)], "bytes");
  return { encoded, skipped: shared - 1, children: new Map([[path.at(-1) ?? nibble, branch]]) };
}

function createBranch(entries: readonly Entry[]): TrieNode {
  const children = new Map<number, TrieNode>();
  const items = Array.from({ length: branchChildren }, (_, nibble) => {
    const own = entries.filter(({ key }) => key[0] === nibble);
    if (own.length === 0) return new Uint8Array(0);
    const child = createNode(cut(own, 1));
    children.set(nibble, child);
    return keccak256(child.encoded);
  });
  return { encoded: toRlp([...items, new Uint8Array(0)], "bytes"), skipped: 0, children };
}

function cut(entries: readonly Entry[], length: number): Entry[] {
  return entries.map(({ key, value }) => ({ key: key.slice(length), value }));
}

/** Length of the keys' common prefix, in nibbles. */
function sharedLength([first, ...others]: readonly Entry[]): number {
  const key = first?.key ?? [];
  const differs = key.findIndex((nibble, place) => others.some((other) => other.key[place] !== nibble));
  return differs === -1 ? key.length : differs;
}

function keyOf(index: number): Uint8Array {
  return toRlp(integerBytes(index), "bytes");
}

/** The hex-prefix form of a path (Yellow Paper, appendix C). */
function pack(path: readonly number[], flag: number): Uint8Array {
  const nibbles = path.length % 2 === 1 ? [flag + oddFlag, ...path] : [flag, 0, ...path];
  return Uint8Array.from(
    { length: nibbles.length / 2 },
    (_, at) => (nibbles[2 * at] ?? 0) * 16 + (nibbles[2 * at + 1] ?? 0),
  );
}

function toNibbles(bytes: Uint8Array): readonly number[] {
  return [...bytes].flatMap((byte) => [byte >> 4, byte & 0x0f]);
}
