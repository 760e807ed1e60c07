import type { Hex } from "./hex-text.ts";

/** No bytes. */
export const emptyBytes = new Uint8Array(0);

/** A Buffer over the same memory. */
export function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A plain Uint8Array over the same memory: its `slice` copies, unlike that of a Buffer. */
export function toPlain(bytes: Uint8Array): Uint8Array {
  return Buffer.isBuffer(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : bytes;
}

export function toHex(bytes: Uint8Array): Hex {
  return `0x${toBuffer(bytes).toString("hex")}`;
}

export function fromHex(hex: string): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

/** A JSON-RPC quantity: no leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`;
}

export function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && toBuffer(left).equals(right);
}

/** The lowest integer that is too large for `writeUIntBE`, which writes at most six bytes. */
const SHORT_INTEGER_END = 2 ** 48;

/** An unsigned integer in big-endian bytes without leading zeros; no bytes for 0. */
export function fromInteger(value: bigint | number): Uint8Array {
  if (value === 0n || value === 0) return emptyBytes;
  if (typeof value === "number" && value < SHORT_INTEGER_END) return fromShortInteger(value);
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

function fromShortInteger(value: number): Uint8Array {
  let length = 1;
  for (let end = 256; value >= end; end *= 256) length += 1;
  const bytes = Buffer.allocUnsafe(length);
  bytes.writeUIntBE(value, 0, length);
  return bytes;
}

export function toBigint(bytes: Uint8Array): bigint {
  return bytes.length === 0 ? 0n : BigInt(toHex(bytes));
}

/** The bytes without leading zeros. */
export function trimZeros(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length && bytes[start] === 0) start += 1;
  return start === 0 ? bytes : bytes.subarray(start);
}

/** The bytes, filled up to `length` with zeros in front. Bytes that are as long or longer come back unchanged. */
export function padStart(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length >= length) return bytes;
  const padded = new Uint8Array(length);
  padded.set(bytes, length - bytes.length);
  return padded;
}
