import { toBuffer } from "@stele/eth/node";

export interface SharedBytes {
  readonly dataOffset: number;
  readonly rawOffset: number;
  readonly length: number;
}

/** Shortest data that is searched for, in bytes: for shorter data a search is not worth its time. */
const DATA_BYTES_MIN = 128;
const PROBE_BYTES = 48;
/** Bytes of one native comparison. The piece in which the bytes differ is then compared byte by byte. */
const STEP_BYTES = 4_096;
/** Maximum number of bytes that ABI encoding adds: the search ends with a run that is at most this much shorter than the data. */
const HEAD_BYTES = 192;
/** Part of the data that a run must cover to be worth a reference. */
const PART_MIN = 0.5;

/**
 * Finds a long run of `data` that `raw` contains: searches for a probe from inside the data and grows the match both ways. Searches first from `from`, where
 * the previous log's run ended.
 */
export function findShared(data: Uint8Array, raw: Uint8Array, from = 0): SharedBytes | undefined {
  if (data.length < DATA_BYTES_MIN || raw.length < PROBE_BYTES) return undefined;
  const haystack = toBuffer(raw);
  let best: SharedBytes | undefined;
  for (const at of probePlaces(data.length)) {
    const found = findFrom(haystack, data.subarray(at, at + PROBE_BYTES), from);
    const shared = found === -1 ? undefined : grow(toBuffer(data), haystack, { at, found });
    if (shared !== undefined && shared.length > (best?.length ?? 0)) best = shared;
    if (best !== undefined && best.length >= data.length - HEAD_BYTES && best.length >= data.length * PART_MIN)
      return best;
  }
  return best !== undefined && best.length >= data.length * PART_MIN ? best : undefined;
}

function findFrom(haystack: Buffer, probe: Uint8Array, from: number): number {
  const found = haystack.indexOf(probe, from);
  return found === -1 && from > 0 ? haystack.indexOf(probe) : found;
}

/**
 * Offsets of the probes. First 96: there the log of a batch has the length of its events, which precedes them in the transaction too. Then other usual head
 * sizes of ABI encoding, and places far inside the data. In repetitive content, such a place matches too early.
 */
function probePlaces(length: number): number[] {
  const last = length - PROBE_BYTES;
  return [96, 0, 64, 128, Math.floor(last / 2), Math.floor((last * 3) / 4)].filter((at) => at <= last);
}

function grow(data: Buffer, raw: Buffer, { at, found }: { readonly at: number; readonly found: number }): SharedBytes {
  const before = sharedEnd(data.subarray(0, at), raw.subarray(0, found));
  const after = sharedStart(data.subarray(at), raw.subarray(found));
  return { dataOffset: at - before, rawOffset: found - before, length: before + after };
}

/** How many bytes two strings have in common at the start. */
function sharedStart(left: Buffer, right: Buffer): number {
  const max = Math.min(left.length, right.length);
  let length = 0;
  while (
    length < max &&
    left.compare(right, length, Math.min(length + STEP_BYTES, max), length, Math.min(length + STEP_BYTES, max)) === 0
  ) {
    length = Math.min(length + STEP_BYTES, max);
  }
  while (length < max && left[length] === right[length]) length += 1;
  return length;
}

/** How many bytes two strings have in common at the end. */
function sharedEnd(left: Buffer, right: Buffer): number {
  const max = Math.min(left.length, right.length);
  const [leftEnd, rightEnd] = [left.subarray(left.length - max), right.subarray(right.length - max)];
  let start = max;
  while (
    start > 0 &&
    leftEnd.compare(rightEnd, Math.max(0, start - STEP_BYTES), start, Math.max(0, start - STEP_BYTES), start) === 0
  ) {
    start = Math.max(0, start - STEP_BYTES);
  }
  while (start > 0 && leftEnd[start - 1] === rightEnd[start - 1]) start -= 1;
  return max - start;
}
