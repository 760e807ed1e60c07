import { toRlp } from "viem";
import { integerBytes } from "../hex.ts";
import { keccak256 } from "../native-crypto.ts";

/** An entry whose key is cut off as far as it has been walked. */
interface Entry {
  readonly key: readonly number[];
  readonly value: Uint8Array;
}

export interface TrieProof {
  readonly root: Uint8Array;
  /** Nodes from the root down to the leaf. */
  readonly nodes: readonly Uint8Array[];
}

const branchChildren = 16;
const oddFlag = 1;
const leafFlag = 2;

/**
 * The Merkle-Patricia trie of a block's receipts (Yellow Paper, appendix D): its root, and the way down to the receipt at `index`. A
 * receipt has 256 bytes of bloom, so no node is short enough to stand inside its parent.
 */
export function proveReceipt(receipts: readonly Uint8Array[], index: number): TrieProof {
  const entries = receipts.map((value, place) => ({ key: toNibbles(keyOf(place)), value }));
  const nodes: Uint8Array[] = [];
  const root = encodeNode(entries, { target: toNibbles(keyOf(index)), nodes });
  return { root: keccak256(root), nodes: nodes.toReversed() };
}

interface Walk {
  /** What is left of the key whose nodes are wanted; undefined off its way. */
  readonly target: readonly number[] | undefined;
  /** Receives the nodes on the way, the deepest first. */
  readonly nodes: Uint8Array[];
}

function encodeNode(entries: readonly Entry[], walk: Walk): Uint8Array {
  const encoded = toRlp(toItems(entries, walk), "bytes");
  if (walk.target !== undefined) walk.nodes.push(encoded);
  return encoded;
}

function toItems(entries: readonly Entry[], { target, nodes }: Walk): Uint8Array[] {
  const [first] = entries;
  if (first !== undefined && entries.length === 1) return [pack(first.key, leafFlag), first.value];
  const shared = sharedLength(entries);
  if (first !== undefined && shared > 0) {
    const child = encodeNode(cut(entries, shared), { target: target?.slice(shared), nodes });
    return [pack(first.key.slice(0, shared), 0), keccak256(child)];
  }
  const children = Array.from({ length: branchChildren }, (_, nibble) => {
    const own = entries.filter(({ key }) => key[0] === nibble);
    if (own.length === 0) return new Uint8Array(0);
    return keccak256(encodeNode(cut(own, 1), { target: target?.[0] === nibble ? target.slice(1) : undefined, nodes }));
  });
  return [...children, new Uint8Array(0)];
}

function cut(entries: readonly Entry[], length: number): Entry[] {
  return entries.map(({ key, value }) => ({ key: key.slice(length), value }));
}

/** How many half-bytes the keys begin with in common. */
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
