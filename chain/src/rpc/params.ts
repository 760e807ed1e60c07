import { fromHex, type Hex } from "@stele/eth/node";
import { invalidParams } from "../rpc-error.ts";

/**
 * Positional parameters of one request, each checked when it is read.
 * @throws ProviderRpcError with geth's message if a parameter is wrong.
 */
export class Params {
  readonly #values: readonly unknown[];

  constructor(values: unknown) {
    if (values !== undefined && !Array.isArray(values)) throw invalidParams("non-array args");
    this.#values = values ?? [];
  }

  optional(index: number): unknown {
    return this.#values[index] ?? undefined;
  }

  required(index: number): unknown {
    const value = this.optional(index);
    if (value === undefined) throw invalidParams(`missing value for required argument ${index}`);
    return value;
  }

  data(index: number): Uint8Array {
    return toData(this.required(index), `argument ${index}`);
  }

  address(index: number): Uint8Array {
    return toFixed(this.required(index), 20, `argument ${index}`);
  }

  hash(index: number): Uint8Array {
    return toFixed(this.required(index), 32, `argument ${index}`);
  }

  quantity(index: number): bigint {
    return toQuantityValue(this.required(index), `argument ${index}`);
  }

  hexText(index: number): Hex {
    return toHexText(this.required(index), `argument ${index}`);
  }
}

const QUANTITY_PATTERN = /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$/;

export function toHexText(value: unknown, place: string): Hex {
  if (typeof value !== "string" || !value.startsWith("0x")) throw notHex(place);
  return value as Hex; // begins with 0x
}

export function toData(value: unknown, place: string): Uint8Array {
  const text = toHexText(value, place);
  const bytes = fromHex(text);
  // Decoding ends at the first pair that is not hex digits, but reads only the lower byte of a character: it reads U+0161 as an "a".
  if (bytes.length * 2 !== text.length - 2 || Buffer.byteLength(text) !== text.length) throw notHex(place);
  return bytes;
}

function notHex(place: string): Error {
  return invalidParams(`invalid ${place}: must be a hex string with 0x prefix and an even number of digits`);
}

export function toFixed(value: unknown, length: number, place: string): Uint8Array {
  const bytes = toData(value, place);
  if (bytes.length !== length)
    throw invalidParams(`invalid ${place}: hex string has length ${bytes.length * 2}, want ${length * 2}`);
  return bytes;
}

export function toQuantityValue(value: unknown, place: string): bigint {
  if (typeof value !== "string" || !QUANTITY_PATTERN.test(value)) {
    throw invalidParams(`invalid ${place}: must be a quantity such as 0x1b4, without leading zeros`);
  }
  return BigInt(value);
}

/** The fields of an object from outside. A field that is null counts as left out, as in geth. */
export function withoutNulls(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
