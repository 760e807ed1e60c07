import { hashBytes, hashHeap, integerBytes, listBytes, MalformedError, RlpReader, RlpWriter } from "@stele/eth";
import { batchEventsMax } from "./decode-events.ts";

/** Bytes of a batch that the heap holds at once, unless one event is longer. This window fits into the processor's cache. */
const windowBytes = 65_536;
/** Room for the list header and the index that precede an event. */
const frontBytes = 16;

/** One level of a Merkle tree: `count` hashes, one after the other, from offset `at` of the heap on. */
export interface Level {
  readonly at: number;
  readonly count: number;
}

interface Frames {
  readonly count: number;
  /** Length of the longest event. */
  readonly longest: number;
}

/**
 * Hashes every event of an encoded batch into its leaf, without an object per event. The leaves are valid until the next use of the heap.
 * @throws MalformedError if the bytes are not a list of lists, or the list is empty or too long.
 */
export function hashLeaves(encoded: Uint8Array): Level {
  const reader = new RlpReader(encoded);
  reader.list(0, encoded.length);
  const { start, end } = reader;
  const { count, longest } = measureFrames(reader, start, end);
  const room = Math.max(windowBytes, longest);
  const heap = hashHeap.reserve(frontBytes + room + count * hashBytes);
  const window = hashHeap.start + frontBytes;
  const level = { at: window + room, count };
  const writer = new RlpWriter(heap);
  // The range of `encoded` that is in the window.
  let [from, to] = [start, start];
  let out = level.at;
  for (let index = 0, at = start; at < end; index += 1, at = reader.end) {
    reader.list(at, end);
    if (reader.end > to) {
      [from, to] = [at, Math.min(at + room, end)];
      heap.set(encoded.subarray(from, to), window);
    }
    const length = reader.end - reader.start;
    hashLeaf(writer, { index, at: window + reader.start - from, length, out });
    out += hashBytes;
  }
  return level;
}

/** Hashes one leaf. Its header and index overwrite bytes of the window that are already hashed. */
function hashLeaf(
  writer: RlpWriter,
  {
    index,
    at,
    length,
    out,
  }: { readonly index: number; readonly at: number; readonly length: number; readonly out: number },
): void {
  const payload = integerBytes(index) + length;
  const bytes = listBytes(payload);
  const first = at + length - bytes;
  writer.at = first;
  writer.list(payload);
  writer.integer(index);
  hashHeap.hash(first, bytes, out);
  hashHeap.hash(out, hashBytes, out);
}

function measureFrames(reader: RlpReader, start: number, end: number): Frames {
  let count = 0;
  let longest = 0;
  for (let at = start; at < end; at = reader.end) {
    reader.list(at, end);
    if (reader.end - at > longest) longest = reader.end - at;
    count += 1;
  }
  if (count === 0) throw new MalformedError("a batch without events");
  if (count > batchEventsMax) throw new MalformedError(`more than ${batchEventsMax} events`);
  return { count, longest };
}

/** Replaces the hashes of a level by their parents: sorts each pair, and moves an odd hash at the end up unchanged. */
export function hashLevel({ at, count }: Level): Level {
  const heap = hashHeap.reserve(0);
  const last = at + (count - 1) * hashBytes;
  let out = at;
  for (let left = at; left < last; left += 2 * hashBytes) {
    if (isDescending(heap, left)) swap(heap, left);
    hashHeap.hash(left, 2 * hashBytes, out);
    out += hashBytes;
  }
  if (count % 2 === 1) heap.copyWithin(out, last, last + hashBytes);
  return { at, count: (count + 1) >> 1 };
}

/** The hashes of a level, copied out of the heap. */
export function copyLevel({ at, count }: Level): Uint8Array {
  return hashHeap.reserve(0).slice(at, at + count * hashBytes);
}

/** The hash at `index` of a level, copied out of the heap. */
export function copyHash({ at }: Level, index: number): Uint8Array {
  return copyLevel({ at: at + index * hashBytes, count: 1 });
}

function isDescending(heap: Uint8Array, left: number): boolean {
  for (let index = left; index < left + hashBytes; index += 1) {
    const difference = (heap[index] ?? 0) - (heap[index + hashBytes] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}

function swap(heap: Uint8Array, left: number): void {
  for (let index = left; index < left + hashBytes; index += 1) {
    const byte = heap[index] ?? 0;
    heap[index] = heap[index + hashBytes] ?? 0;
    heap[index + hashBytes] = byte;
  }
}
