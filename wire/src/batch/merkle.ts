import {
  hashBytes,
  integerBytes,
  type Keccak256,
  listBytes,
  portableKeccak256,
  RlpReader,
  RlpWriter,
} from "@stele/eth";
import { type BatchEvent, encodeEvents } from "./encode-events.ts";
import { copyHash, copyLevel, hashLeaves, hashLevel } from "./merkle-leaves.ts";

const pairBytes = 64;

/** keccak256(keccak256(RLP([index, content, [key, value, …]]))): the leaf of one event in the Merkle tree of its batch. */
export function leafHash(index: number, event: BatchEvent, keccak: Keccak256 = portableKeccak256): Uint8Array {
  const encoded = encodeEvents([event]);
  const reader = new RlpReader(encoded);
  reader.list(0, encoded.length);
  reader.list(reader.start, reader.end);
  return leafOf(index, encoded.subarray(reader.start, reader.end), keccak);
}

/**
 * The Merkle root over an encoded batch. Each pair is sorted before it is hashed, an odd node at the end of a level moves up unchanged, and a single leaf is
 * the root. OpenZeppelin's MerkleProof verifies paths to it. Reads only where each event begins and ends: {@link decodeEvents} validates the content.
 * @throws MalformedError if the bytes are not a list of lists, or the list is empty or longer than a batch may be.
 */
export function merkleRoot(encoded: Uint8Array): Uint8Array {
  let level = hashLeaves(encoded);
  while (level.count > 1) level = hashLevel(level);
  return copyLevel(level);
}

/**
 * The sibling hashes from the leaf of the event at `index` (from 0) up to the root.
 * @throws MalformedError as merkleRoot does; RangeError if there is no such event.
 */
export function merklePath(encoded: Uint8Array, index: number): Uint8Array[] {
  let level = hashLeaves(encoded);
  const { count } = level;
  if (!Number.isInteger(index) || index < 0 || index >= count) throw new RangeError(`no event ${index} of ${count}`);
  const path: Uint8Array[] = [];
  for (let place = index; level.count > 1; place >>= 1) {
    const sibling = place ^ 1;
    if (sibling < level.count) path.push(copyHash(level, sibling));
    level = hashLevel(level);
  }
  return path;
}

/** Whether `path` leads from `leaf` to `root`. */
export function verifyPath(
  proof: { readonly leaf: Uint8Array; readonly path: readonly Uint8Array[]; readonly root: Uint8Array },
  keccak: Keccak256 = portableKeccak256,
): boolean {
  if (proof.leaf.length !== hashBytes || proof.root.length !== hashBytes) return false;
  const pair = new Uint8Array(pairBytes);
  let node = proof.leaf;
  for (const sibling of proof.path) {
    if (sibling.length !== hashBytes) return false;
    const first = compareHashes(node, sibling) <= 0;
    pair.set(first ? node : sibling, 0);
    pair.set(first ? sibling : node, hashBytes);
    node = keccak(pair);
  }
  return compareHashes(node, proof.root) === 0;
}

/** The leaf of an event. `payload` is the payload of the event's list, as encoded in the batch. */
function leafOf(index: number, payload: Uint8Array, keccak: Keccak256): Uint8Array {
  const length = integerBytes(index) + payload.length;
  const writer = new RlpWriter(new Uint8Array(listBytes(length)));
  writer.list(length);
  writer.integer(index);
  writer.raw(payload);
  return keccak(keccak(writer.bytes));
}

/** Compares the first 32 bytes of two arrays. */
function compareHashes(left: Uint8Array, right: Uint8Array): number {
  for (let index = 0; index < hashBytes; index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
