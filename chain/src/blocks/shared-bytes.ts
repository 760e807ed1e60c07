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

/** Finds a long run of `data` that also stands in `raw`: a probe from the data's inside, grown both ways. */
export function findShared(data: Uint8Array, raw: Uint8Array): SharedBytes | undefined {
  if (data.length < DATA_BYTES_MIN || raw.length < PROBE_BYTES) return undefined;
  const haystack = toBuffer(raw);
  for (let probe = 1; probe <= PROBES; probe += 1) {
    const at = Math.floor(((data.length - PROBE_BYTES) * probe) / (PROBES + 1));
    const found = haystack.indexOf(data.subarray(at, at + PROBE_BYTES));
    const shared = found === -1 ? undefined : grow(data, raw, { at, found });
    if (shared !== undefined && shared.length * 2 >= data.length) return shared;
  }
  return undefined;
}

function grow(data: Uint8Array, raw: Uint8Array, { at, found }: { at: number; found: number }): SharedBytes {
  let before = 0;
  while (before < at && before < found && data[at - before - 1] === raw[found - before - 1]) before += 1;
  let length = 0;
  while (at + length < data.length && found + length < raw.length && data[at + length] === raw[found + length])
    length += 1;
  return { dataOffset: at - before, rawOffset: found - before, length: before + length };
}
