const decoder = new TextDecoder();
const zero = 0x30;
/** Added to "0" plus a digit from 10 on, gives the code of its letter: in ASCII, "a" does not follow "9". */
const letter = 0x61 - zero - 10;

/** Bytes or a number as text: `0x` and hex digits. */
export type Hex = `0x${string}`;

/**
 * `0x` and two lower-case digits per byte. Same as `toHex`, but also runs in browsers. Joining one text per byte would be slow: for a megabyte, it took 34 ms
 * and left a million objects to the garbage collector.
 */
export function toHexText(bytes: Uint8Array): Hex {
  const text = new Uint8Array(2 * bytes.length);
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    text[2 * index] = codeOf(byte >> 4);
    text[2 * index + 1] = codeOf(byte & 0x0f);
  }
  return `0x${decoder.decode(text)}`;
}

function codeOf(digit: number): number {
  return zero + digit + (digit < 10 ? 0 : letter);
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
