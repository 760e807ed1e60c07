import { crc32 } from "node:zlib";

/** What stands in a column beside bytes. */
export type Scalar = string | number | null;

/** CRC-32 of values in their order: it finds every change of up to three bits, and all others but one in four billion. */
export function checksumOf(values: readonly Scalar[]): number {
  return crc32(JSON.stringify(values));
}

export function checksumOfBytes(bytes: Uint8Array): number {
  return crc32(bytes);
}
