import { toBuffer } from "@stele/eth/node";

/**
 * A 256-bit word: a number up to 2^53 − 1, a bigint above. Every value has only one form, so `===` compares words. The offsets and counters that most
 * instructions work on need no allocation.
 */
export type Word = number | bigint;

export const WORD_BYTES = 32;
export const WORD_BITS = 256;

const LARGEST_NUMBER = Number.MAX_SAFE_INTEGER;
const LARGEST_NUMBER_AS_BIGINT = BigInt(LARGEST_NUMBER);
const SIGN_BIT = 1n << 255n;
const MODULUS = 1n << 256n;
const HALF_BITS = 32;
const HALF = 2 ** HALF_BITS;
/** Upper 32 bits of the first number that needs a bigint. */
const UPPER_END = 2 ** 21;
const LARGEST_SMALL = 0x7fff_ffff;
/** Bits of the largest number. */
const NUMBER_BITS = 53;

/** The word with the value of a bigint from 0 to 2^256 − 1. */
export function toWord(value: bigint): Word {
  return value <= LARGEST_NUMBER_AS_BIGINT ? Number(value) : value;
}

/** The word that a bigint of any size and sign wraps to. */
export function wrap(value: bigint): Word {
  return toWord(BigInt.asUintN(WORD_BITS, value));
}

/** Reads 32 bytes at `at`, which must be there. */
export function readWord(bytes: Buffer, at: number): Word {
  const lower = readNumber(bytes, at);
  if (lower !== undefined) return lower;
  return (
    (bytes.readBigUInt64BE(at) << 192n) |
    (bytes.readBigUInt64BE(at + 8) << 128n) |
    (bytes.readBigUInt64BE(at + 16) << 64n) |
    bytes.readBigUInt64BE(at + 24)
  );
}

/** The 32 bytes at `at` as a number; undefined if the value needs a bigint. */
function readNumber(bytes: Buffer, at: number): number | undefined {
  for (let index = at; index < at + 24; index += 1) if (bytes[index] !== 0) return undefined;
  const upper = bytes.readUInt32BE(at + 24);
  return upper < UPPER_END ? upper * HALF + bytes.readUInt32BE(at + 28) : undefined;
}

/** Writes 32 bytes at `at`. */
export function writeWord(bytes: Buffer, at: number, word: Word): void {
  if (typeof word === "number") {
    bytes.fill(0, at, at + 24);
    bytes.writeUInt32BE(Math.floor(word / HALF), at + 24);
    bytes.writeUInt32BE(word % HALF, at + 28);
    return;
  }
  for (let piece = 3, rest = word; piece >= 0; piece -= 1, rest >>= 64n) {
    bytes.writeBigUInt64BE(BigInt.asUintN(64, rest), at + piece * 8);
  }
}

/** The word of up to 32 big-endian bytes. */
export function fromBytes(bytes: Uint8Array): Word {
  if (bytes.length === 0) return 0;
  if (bytes.length <= 6) return toBuffer(bytes).readUIntBE(0, bytes.length);
  if (bytes.length === WORD_BYTES) return readWord(toBuffer(bytes), 0);
  return toWord(BigInt(`0x${toBuffer(bytes).toString("hex")}`));
}

/** The word as a new buffer of 32 bytes. */
export function toBytes(word: Word): Buffer {
  const bytes = Buffer.allocUnsafe(WORD_BYTES);
  writeWord(bytes, 0, word);
  return bytes;
}

export function add(a: Word, b: Word): Word {
  if (typeof a === "number" && typeof b === "number" && a + b <= LARGEST_NUMBER) return a + b;
  return wrap(BigInt(a) + BigInt(b));
}

export function subtract(a: Word, b: Word): Word {
  if (typeof a === "number" && typeof b === "number" && a >= b) return a - b;
  return wrap(BigInt(a) - BigInt(b));
}

export function multiply(a: Word, b: Word): Word {
  if (typeof a === "number" && typeof b === "number" && a * b <= LARGEST_NUMBER) return a * b;
  return wrap(BigInt(a) * BigInt(b));
}

export function divide(a: Word, b: Word): Word {
  if (b === 0) return 0;
  if (typeof a === "number" && typeof b === "number") return (a - (a % b)) / b;
  return toWord(BigInt(a) / BigInt(b));
}

export function remainder(a: Word, b: Word): Word {
  if (b === 0) return 0;
  if (typeof a === "number" && typeof b === "number") return a % b;
  return toWord(BigInt(a) % BigInt(b));
}

export function signedDivide(a: Word, b: Word): Word {
  return b === 0 ? 0 : wrap(toSigned(a) / toSigned(b));
}

export function signedRemainder(a: Word, b: Word): Word {
  return b === 0 ? 0 : wrap(toSigned(a) % toSigned(b));
}

export function addModulo(a: Word, b: Word, modulus: Word): Word {
  return modulus === 0 ? 0 : toWord((BigInt(a) + BigInt(b)) % BigInt(modulus));
}

export function multiplyModulo(a: Word, b: Word, modulus: Word): Word {
  return modulus === 0 ? 0 : toWord((BigInt(a) * BigInt(b)) % BigInt(modulus));
}

/** Extends the sign of the lowest `index + 1` bytes. */
export function signExtend(index: Word, value: Word): Word {
  if (index > 30) return value;
  return wrap(BigInt.asIntN((Number(index) + 1) * 8, BigInt(value)));
}

export function lessThan(a: Word, b: Word): Word {
  return a < b ? 1 : 0;
}

export function greaterThan(a: Word, b: Word): Word {
  return a > b ? 1 : 0;
}

export function signedLessThan(a: Word, b: Word): Word {
  if (typeof a === "number" && typeof b === "number") return a < b ? 1 : 0;
  return toSigned(a) < toSigned(b) ? 1 : 0;
}

export function signedGreaterThan(a: Word, b: Word): Word {
  return signedLessThan(b, a);
}

export function equal(a: Word, b: Word): Word {
  return a === b ? 1 : 0;
}

export function and(a: Word, b: Word): Word {
  if (isSmall(a) && isSmall(b)) return a & b;
  return toWord(BigInt(a) & BigInt(b));
}

/** As `and` with a known word, which is mostly a mask of the lowest bits. */
export function andWith(mask: Word): (value: Word) => Word {
  const bits = bitsOfMask(mask);
  if (bits === undefined) return (value) => and(mask, value);
  // If a number is greater than the mask, then the mask is a number too.
  return (value) => {
    if (typeof value === "number") return value <= mask ? value : value % (Number(mask) + 1);
    return bits <= NUMBER_BITS ? Number(BigInt.asUintN(bits, value)) : toWord(BigInt.asUintN(bits, value));
  };
}

/** The number of bits of a mask of the lowest bits; undefined if the word is no such mask. */
function bitsOfMask(mask: Word): number | undefined {
  const next = BigInt(mask) + 1n;
  const bits = next.toString(2).length - 1;
  return next === 1n << BigInt(bits) ? bits : undefined;
}

export function or(a: Word, b: Word): Word {
  if (isSmall(a) && isSmall(b)) return a | b;
  return toWord(BigInt(a) | BigInt(b));
}

export function exclusiveOr(a: Word, b: Word): Word {
  if (isSmall(a) && isSmall(b)) return a ^ b;
  return toWord(BigInt(a) ^ BigInt(b));
}

export function not(a: Word): Word {
  return toWord(MODULUS - 1n - BigInt(a));
}

/** One byte, counted from the highest. */
export function byteAt(index: Word, value: Word): Word {
  if (index >= WORD_BYTES) return 0;
  return Number((BigInt(value) >> BigInt(8 * (WORD_BYTES - 1 - Number(index)))) & 0xffn);
}

export function shiftLeft(shift: Word, value: Word): Word {
  if (shift >= WORD_BITS) return 0;
  return wrap(BigInt(value) << BigInt(shift));
}

/** As `shiftLeft` by a known number of bits. */
export function shiftLeftBy(shift: Word): (value: Word) => Word {
  if (shift >= WORD_BITS) return () => 0;
  const factor = 2 ** Number(shift);
  const bits = BigInt(shift);
  return (value) => {
    if (typeof value === "number" && value * factor <= LARGEST_NUMBER) return value * factor;
    return wrap(BigInt(value) << bits);
  };
}

export function shiftRight(shift: Word, value: Word): Word {
  if (shift >= WORD_BITS) return 0;
  if (typeof value === "number") return Math.floor(value / 2 ** Number(shift));
  return toWord(value >> BigInt(shift));
}

/** As `shiftRight` by a known number of bits. */
export function shiftRightBy(shift: Word): (value: Word) => Word {
  if (shift >= WORD_BITS) return () => 0;
  const divisor = 2 ** Number(shift);
  const bits = BigInt(shift);
  return (value) => (typeof value === "number" ? Math.floor(value / divisor) : toWord(value >> bits));
}

export function signedShiftRight(shift: Word, value: Word): Word {
  return wrap(toSigned(value) >> (shift >= WORD_BITS ? BigInt(WORD_BITS) : BigInt(shift)));
}

function isSmall(word: Word): word is number {
  return typeof word === "number" && word <= LARGEST_SMALL;
}

function toSigned(word: Word): bigint {
  const value = BigInt(word);
  return value >= SIGN_BIT ? value - MODULUS : value;
}
