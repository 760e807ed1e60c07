import { type BatchEvent, encodeEvents } from "./encode-events.ts";
import { type Keccak256, portableKeccak256 } from "./keccak.ts";
import { MalformedBatchError } from "./malformed-batch-error.ts";
import { RlpReader } from "./rlp-reader.ts";
import { integerBytes, listBytes, RlpWriter } from "./rlp-writer.ts";

export const hashBytes = 32;
const pairBytes = 64;

/** keccak256(keccak256(RLP([index, content, [key, value, …]]))): what stands for one event under a batch's root. */
export function leafHash(index: number, event: BatchEvent, keccak: Keccak256 = portableKeccak256): Uint8Array {
  const encoded = encodeEvents([event]);
  const reader = new RlpReader(encoded);
  reader.list(0, encoded.length);
  reader.list(reader.start, reader.end);
  return leafOf(index, encoded.subarray(reader.start, reader.end), keccak);
}

/**
 * The Merkle root over an encoded batch: pairs are sorted before they are hashed, an odd node at the end of a level is
 * carried up unchanged, a single leaf is the root. OpenZeppelin's MerkleProof verifies paths to it.
 * It looks at the events' frames only: whether they are well formed is for {@link decodeEvents} to say.
 * @throws MalformedBatchError when the bytes are not a list of lists, or the list is empty.
 */
export function merkleRoot(encoded: Uint8Array, keccak: Keccak256 = portableKeccak256): Uint8Array {
  const level = leaves(encoded, keccak);
  for (let count = level.length / hashBytes; count > 1; count = (count + 1) >> 1) hashLevel(level, count, keccak);
  return level.slice(0, hashBytes);
}

/** The sibling hashes from the leaf of the event at `index` (from 0) up to the root. @throws MalformedBatchError as merkleRoot. */
export function merklePath(encoded: Uint8Array, index: number, keccak: Keccak256 = portableKeccak256): Uint8Array[] {
  const level = leaves(encoded, keccak);
  const path: Uint8Array[] = [];
  let place = index;
  let count = level.length / hashBytes;
  if (!Number.isInteger(index) || index < 0 || index >= count) throw new RangeError(`no event ${index} of ${count}`);
  while (count > 1) {
    const sibling = place ^ 1;
    if (sibling < count) path.push(level.slice(sibling * hashBytes, (sibling + 1) * hashBytes));
    hashLevel(level, count, keccak);
    count = (count + 1) >> 1;
    place >>= 1;
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

/** All leaves, one after the other. @throws MalformedBatchError as merkleRoot. */
export function leaves(encoded: Uint8Array, keccak: Keccak256): Uint8Array {
  const reader = new RlpReader(encoded);
  reader.list(0, encoded.length);
  const { start, end } = reader;
  const result = new Uint8Array(countItems(reader, start, end) * hashBytes);
  if (result.length === 0) throw new MalformedBatchError("a batch without events");
  let index = 0;
  for (let at = start; at < end; at = reader.end) {
    reader.list(at, end);
    result.set(leafOf(index, encoded.subarray(reader.start, reader.end), keccak), index * hashBytes);
    index += 1;
  }
  return result;
}

function countItems(reader: RlpReader, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at = reader.end) {
    reader.list(at, end);
    count += 1;
  }
  return count;
}

/** `payload` is what the event's list holds, as it is encoded in the batch. */
function leafOf(index: number, payload: Uint8Array, keccak: Keccak256): Uint8Array {
  const length = integerBytes(index) + payload.length;
  const writer = new RlpWriter(new Uint8Array(listBytes(length)));
  writer.list(length);
  writer.integer(index);
  writer.raw(payload);
  return keccak(keccak(writer.bytes));
}

/** Replaces the first `count` hashes of `level` by their parents. */
export function hashLevel(level: Uint8Array, count: number, keccak: Keccak256): void {
  const pair = new Uint8Array(pairBytes);
  for (let left = 0; left + 1 < count; left += 2) {
    const at = left * hashBytes;
    const bytes = level.subarray(at, at + pairBytes);
    const right = bytes.subarray(hashBytes);
    const sorted = compareHashes(bytes, right) <= 0;
    if (!sorted) {
      pair.set(right, 0);
      pair.set(bytes.subarray(0, hashBytes), hashBytes);
    }
    level.set(keccak(sorted ? bytes : pair), at >> 1);
  }
  if (count % 2 === 1) level.copyWithin(((count - 1) >> 1) * hashBytes, (count - 1) * hashBytes, count * hashBytes);
}

/** The order of the first 32 bytes of each. */
function compareHashes(left: Uint8Array, right: Uint8Array): number {
  for (let index = 0; index < hashBytes; index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
