import { integerBytes, isSameBytes, type Keccak256, RlpList, RlpWriter, toNibbles, unpackPath } from "@stele/eth";
import { Refuted } from "./refuted.ts";

const branchItems = 17;
const pairItems = 2;
const hashBytes = 32;

/** State of a walk through a trie: the remaining nibbles of the key, and the hash of the next node. */
interface Place {
  readonly key: Uint8Array;
  readonly expected: Uint8Array;
}

/**
 * The receipt of a transaction in the trie under `root`: the value of the last of the `nodes`. `root` is the hash of the first node, and each node refers to
 * the next.
 * Nodes shorter than a hash would be embedded in their parent; they do not occur because every receipt is longer.
 * @throws Refuted; MalformedError for malformed nodes.
 */
export function findReceipt(
  proof: { readonly root: Uint8Array; readonly transactionIndex: number; readonly nodes: readonly Uint8Array[] },
  keccak: Keccak256,
): Uint8Array {
  let place: Place = { key: keyOf(proof.transactionIndex), expected: proof.root };
  for (const [index, node] of proof.nodes.entries()) {
    if (!isSameBytes(keccak(node), place.expected))
      throw new Refuted("receipt", `node ${index} of the trie has another hash`);
    const items = new RlpList(node).strings();
    const isLast = index === proof.nodes.length - 1;
    const next = step(items, place.key);
    if (next instanceof Uint8Array && isLast) return next;
    if (next === undefined || next instanceof Uint8Array) break;
    place = next;
  }
  throw new Refuted("receipt", `the trie's nodes do not lead to transaction ${proof.transactionIndex}`);
}

/** The value if the node is the key's leaf, the next place if the node leads further, else undefined. */
function step(items: readonly Uint8Array[], key: Uint8Array): Uint8Array | Place | undefined {
  if (items.length === branchItems) return toPlace(items[key[0] ?? branchItems - 1], key.subarray(1));
  const [packed, content] = items;
  if (items.length !== pairItems || packed === undefined || content === undefined) return undefined;
  const unpacked = unpackPath(packed);
  if (unpacked === undefined) return undefined;
  const { path, isLeaf } = unpacked;
  if (isLeaf) return isSameBytes(path, key) ? content : undefined;
  const { length } = path;
  return isSameBytes(path, key.subarray(0, length)) ? toPlace(content, key.subarray(length)) : undefined;
}

function toPlace(expected: Uint8Array | undefined, key: Uint8Array): Place | undefined {
  return expected?.length === hashBytes ? { key, expected } : undefined;
}

/** RLP of the transaction's index, in nibbles. */
function keyOf(transactionIndex: number): Uint8Array {
  const writer = new RlpWriter(new Uint8Array(integerBytes(transactionIndex)));
  writer.integer(transactionIndex);
  return toNibbles(writer.bytes);
}
