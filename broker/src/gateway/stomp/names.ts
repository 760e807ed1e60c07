import { parameterError } from "../shared/failure.ts";
import { findHeader, type Headers } from "./codec/frame.ts";
import { nameBytesMax } from "./limits.ts";
import { requireHeader } from "./mapping.ts";

/** A header whose value the broker keeps. @throws BrokerError 200001 if it is missing or too long. */
export function requireName(headers: Headers, name: string): string {
  return checked(requireHeader(headers, name), name);
}

/** The `receipt-id` of the RECEIPT; undefined if the client asks for none. @throws BrokerError 200001 if it is too long. */
export function findReceipt(headers: Headers): string | undefined {
  const value = findHeader(headers, "receipt");
  return value === undefined ? undefined : checked(value, "receipt");
}

function checked(value: string, name: string): string {
  if (Buffer.byteLength(value) <= nameBytesMax) return value;
  throw parameterError(`the header "${name}" has more than ${nameBytesMax} bytes`);
}
