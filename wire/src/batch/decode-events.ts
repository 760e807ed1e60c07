import { MalformedError, RlpReader } from "@stele/eth";
import type { BatchEvent } from "./encode-events.ts";

/** Maximum number of events in one batch. A batch with more is malformed, so that a foreign batch cannot block a reader for long. */
export const batchEventsMax = 65_536;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes what {@link encodeEvents} writes, and nothing else: one canonical RLP list of at most {@link batchEventsMax} events, texts in valid UTF-8,
 * no trailing bytes. Time and memory are linear in the bytes. A content is a view into `bytes`, not a copy.
 * @throws MalformedError for every other input.
 */
export function decodeEvents(bytes: Uint8Array): BatchEvent[] {
  const reader = new RlpReader(bytes);
  reader.list(0, bytes.length);
  const { end } = reader;
  if (end !== bytes.length) throw new MalformedError(`${bytes.length - end} bytes after the list of events`);
  const events: BatchEvent[] = [];
  for (let at = reader.start; at < end; at = reader.end) {
    if (events.length === batchEventsMax) throw new MalformedError(`more than ${batchEventsMax} events`);
    events.push(decodeEvent(reader, bytes, { at, limit: end }));
  }
  return events;
}

function decodeEvent(reader: RlpReader, bytes: Uint8Array, place: { at: number; limit: number }): BatchEvent {
  reader.list(place.at, place.limit);
  const { end } = reader;
  reader.string(reader.start, end);
  const content = bytes.subarray(reader.start, reader.end);
  reader.list(reader.end, end);
  if (reader.end !== end) throw new MalformedError(`an event of more than two items, at byte ${place.at}`);
  const extensions: [string, string][] = [];
  for (let at = reader.start; at < end; at = reader.end) {
    const key = decodeText(reader, bytes, { at, limit: end });
    extensions.push([key, decodeText(reader, bytes, { at: reader.end, limit: end })]);
  }
  return { content, extensions };
}

function decodeText(reader: RlpReader, bytes: Uint8Array, place: { at: number; limit: number }): string {
  reader.string(place.at, place.limit);
  try {
    return decoder.decode(bytes.subarray(reader.start, reader.end));
  } catch {
    throw new MalformedError(`an extension that is not UTF-8, at byte ${place.at}`);
  }
}
