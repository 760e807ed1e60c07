import { bytesToHex } from "@noble/hashes/utils.js";

/** Bytes or a number as text: `0x` and hex digits. */
export type Hex = `0x${string}`;

/** `0x` and two lower-case digits per byte. Same as `toHex`, but also runs in browsers. */
export function toHexText(bytes: Uint8Array): Hex {
  return `0x${bytesToHex(bytes)}`;
}

/** The bytes of a text as {@link toHexText} writes it. Undefined for any other text, so that no two texts give the same bytes. */
export function findBytes(text: string): Uint8Array | undefined {
  if (!text.startsWith("0x") || text.length % 2 !== 0) return undefined;
  const bytes = new Uint8Array(text.length / 2 - 1);
  for (let index = 0; index < bytes.length; index += 1) {
    const high = digitOf(text.charCodeAt(2 * index + 2));
    const low = digitOf(text.charCodeAt(2 * index + 3));
    if (high === undefined || low === undefined) return undefined;
    bytes[index] = high * 16 + low;
  }
  return bytes;
}

function digitOf(unit: number): number | undefined {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30;
  return unit >= 0x61 && unit <= 0x66 ? unit - 0x57 : undefined;
}
