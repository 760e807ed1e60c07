import { listBytes, RlpWriter, stringBytes, textBytes } from "@stele/eth";

/** An event as a batch contains it: its content, and its extensions as key and value pairs in the producer's order. */
export interface BatchEvent {
  readonly content: Uint8Array;
  readonly extensions: readonly (readonly [key: string, value: string])[];
}

/**
 * The `events` of a batch: an RLP list with one item `[content, [key, value, key, value, …]]` per event. Texts are UTF-8; a lone surrogate in an extension
 * becomes U+FFFD.
 */
export function encodeEvents(events: readonly BatchEvent[]): Uint8Array {
  let payload = 0;
  for (const event of events) payload += encodedBytes(event);
  const writer = new RlpWriter(new Uint8Array(listBytes(payload)));
  writer.list(payload);
  for (const event of events) writeEvent(writer, event);
  return writer.bytes;
}

/** Bytes that `event` takes in a batch. The list header around all events takes at most 5 more. */
export function encodedBytes(event: BatchEvent): number {
  return listBytes(stringBytes(event.content) + listBytes(extensionsBytes(event)));
}

/** Writes `event` as a batch contains it. */
export function writeEvent(writer: RlpWriter, event: BatchEvent): void {
  const extensions = extensionsBytes(event);
  writer.list(stringBytes(event.content) + listBytes(extensions));
  writer.string(event.content);
  writer.list(extensions);
  for (const [key, value] of event.extensions) {
    writer.text(key);
    writer.text(value);
  }
}

function extensionsBytes(event: BatchEvent): number {
  let bytes = 0;
  for (const [key, value] of event.extensions) bytes += textBytes(key) + textBytes(value);
  return bytes;
}
