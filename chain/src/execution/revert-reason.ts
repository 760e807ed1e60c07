import { toBigint, toBuffer, toHex } from "@stele/eth/node";

const SELECTOR_BYTES = 4;
const WORD_BYTES = 32;
const ERROR_SELECTOR = "0x08c379a0";
const PANIC_SELECTOR = "0x4e487b71";

/** Solidity's panic codes, in geth's words. */
const PANICS: Readonly<Record<number, string>> = {
  0x00: "generic panic",
  0x01: "assert(false)",
  0x11: "arithmetic underflow or overflow",
  0x12: "division or modulo by zero",
  0x21: "enum overflow",
  0x22: "invalid encoded storage byte array accessed",
  0x31: "out-of-bounds array access; popping on an empty array",
  0x32: "out-of-bounds access of an array or bytesN",
  0x41: "out of memory",
  0x51: "uninitialized function",
};

/** The message of `Error(string)` or `Panic(uint256)`, with ": " before it; empty for any other output. */
export function describeRevert(output: Uint8Array): string {
  const selector = toHex(output.subarray(0, SELECTOR_BYTES));
  const body = output.subarray(SELECTOR_BYTES);
  if (selector === ERROR_SELECTOR) return describeError(body);
  if (selector !== PANIC_SELECTOR || body.length < WORD_BYTES) return "";
  const code = toBigint(body.subarray(0, WORD_BYTES));
  return `: ${PANICS[Number(code)] ?? `unknown panic code: 0x${code.toString(16)}`}`;
}

function describeError(body: Uint8Array): string {
  const offset = Number(toBigint(body.subarray(0, WORD_BYTES)));
  if (body.length < WORD_BYTES || offset + WORD_BYTES > body.length) return "";
  const length = Number(toBigint(body.subarray(offset, offset + WORD_BYTES)));
  const start = offset + WORD_BYTES;
  return start + length > body.length ? "" : `: ${toBuffer(body.subarray(start, start + length)).toString("utf8")}`;
}
