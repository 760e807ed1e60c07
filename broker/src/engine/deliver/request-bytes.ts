import { encodedBytes } from "@stele/wire";
import type { Event } from "../../domain/event.ts";

/** What an event takes in a request beside its content and extensions. */
const envelopeBytes = 512;
/** What each of its extensions takes in memory beside its characters. */
const extensionOverheadBytes = 128;

/** About what an event takes in a request, and in memory until it is sent. */
export function requestBytesOf(event: Event): number {
  return encodedBytes(event) + event.extensions.length * extensionOverheadBytes + envelopeBytes;
}
