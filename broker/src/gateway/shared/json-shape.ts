import { jsonDepthMax, jsonValuesMax } from "../limits.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/** What a JSON text holds: its values, and why it is not read where it holds too much. */
export interface JsonShape {
  readonly values: number;
  readonly refusal: string | undefined;
}

/** Measures a JSON text before anything is made of it. What is not JSON may be measured wrong; reading it fails. */
export function measureJson(text: Buffer): JsonShape {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at] ?? 0;
    if (byte === quote) at = findStringEnd(text, at);
    else if (isOpening(byte)) {
      depth += 1;
      if (depth > jsonDepthMax) return { values, refusal: `the JSON body is more than ${jsonDepthMax} levels deep` };
    } else if (isClosing(byte)) depth -= 1;
    if (byte === comma || isOpening(byte)) values += 1;
    if (values > jsonValuesMax) return { values, refusal: `the JSON body has more than ${jsonValuesMax} values` };
  }
  return { values, refusal: undefined };
}

function isOpening(byte: number): boolean {
  return byte === 0x5b || byte === 0x7b;
}

function isClosing(byte: number): boolean {
  return byte === 0x5d || byte === 0x7d;
}

function findStringEnd(text: Buffer, start: number): number {
  for (let end = text.indexOf(quote, start + 1); end !== -1; end = text.indexOf(quote, end + 1)) {
    if (!isEscaped(text, end)) return end;
  }
  return text.length;
}

function isEscaped(text: Buffer, at: number): boolean {
  let first = at;
  while (text[first - 1] === backslash) first -= 1;
  return (at - first) % 2 === 1;
}
