import { toBuffer } from "../lib/bytes.ts";

export interface SharedBytes {
  readonly dataOffset: number;
  readonly rawOffset: number;
  readonly length: number;
}

/** Shorter data is not worth the search. */
const DATA_BYTES_MIN = 128;
const PROBE_BYTES = 48;
const PROBES = 4;
/** Compared natively in one go; the last piece byte by byte. */
const STEP_BYTES = 4_096;

/** Finds a long run of `data` that also stands in `raw`: a probe from the data's inside, grown both ways. */
export function findShared(data: Uint8Array, raw: Uint8Array): SharedBytes | undefined {
  if (data.length < DATA_BYTES_MIN || raw.length < PROBE_BYTES) return undefined;
  const haystack = toBuffer(raw);
  for (let probe = 1; probe <= PROBES; probe += 1) {
    const at = Math.floor(((data.length - PROBE_BYTES) * probe) / (PROBES + 1));
    const found = haystack.indexOf(data.subarray(at, at + PROBE_BYTES));
    const shared = found === -1 ? undefined : grow(toBuffer(data), haystack, { at, found });
    if (shared !== undefined && shared.length * 2 >= data.length) return shared;
  }
  return undefined;
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
