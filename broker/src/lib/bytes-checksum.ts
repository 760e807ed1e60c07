import { crc32 } from "node:zlib";

/** CRC-32 of bytes. */
export function checksumOfBytes(bytes: Uint8Array): number {
  return crc32(bytes);
}
