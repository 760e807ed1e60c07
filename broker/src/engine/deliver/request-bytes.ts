import { encodedBytes } from "@stele/wire";
import type { Event } from "../../domain/event.ts";

/** Estimated bytes of an event in a request besides its content and extensions. */
const envelopeBytes = 512;
/** Estimated memory of each extension besides its characters, in bytes. */
const extensionOverheadBytes = 128;

/** Estimated bytes of an event in a request, and in memory until it is sent. */
export function requestBytesOf(event: Event): number {
  return encodedBytes(event) + event.extensions.length * extensionOverheadBytes + envelopeBytes;
}
