import { keccak256 } from "@stele/eth/node";

/** A batch in the calldata of `publish`: a tuple of topic, count, eventsRoot, offset of the events, length of the events, and the events. */
export interface BatchInput {
  /** Offset of the tuple in the calldata. */
  readonly at: number;
  readonly count: number;
  readonly eventsBytes: number;
}

const WORD = 32;
const SELECTOR_BYTES = 4;
/** Bytes of a tuple before its events. */
export const TUPLE_BYTES = 5 * WORD;
/** Offsets in a tuple, from its beginning. The first word is the topic. */
export const COUNT_AT = WORD;
const EVENTS_OFFSET_AT = 3 * WORD;
const EVENTS_BYTES_AT = 4 * WORD;
const ADDRESS_PADDING = 12;
/** Bytes of the shortest encoded event. The registry rejects a batch whose count of events cannot fit into its bytes. */
const EVENT_BYTES_MIN = 3;

const SELECTOR = keccak256(Buffer.from("publish((address,uint32,bytes32,bytes)[])")).readUInt32BE(0);

/**
 * The batches of a `publish` whose arguments are encoded without gaps, each with a plausible count. Undefined for other functions, for no batches,
 * for other encodings, and where the registry rejects a batch for its count.
 */
export function readPublish(input: Buffer): readonly BatchInput[] | undefined {
  const listAt = SELECTOR_BYTES + WORD;
  const heads = listAt + WORD;
  if (input.length < heads || input.readUInt32BE(0) !== SELECTOR || readNumber(input, SELECTOR_BYTES) !== WORD)
    return undefined;
  const total = readNumber(input, listAt) ?? 0;
  let at = heads + total * WORD;
  if (total === 0 || at > input.length) return undefined;
  const batches: BatchInput[] = [];
  for (let index = 0; index < total; index += 1) {
    const batch = readNumber(input, heads + index * WORD) === at - heads ? readBatch(input, at) : undefined;
    if (batch === undefined) return undefined;
    batches.push(batch);
    at += TUPLE_BYTES + toWords(batch.eventsBytes) * WORD;
  }
  return batches;
}

function readBatch(input: Buffer, at: number): BatchInput | undefined {
  if (at + TUPLE_BYTES > input.length || !isZero(input, at, ADDRESS_PADDING)) return undefined;
  const count = readNumber(input, at + COUNT_AT) ?? 0;
  const eventsBytes = readNumber(input, at + EVENTS_BYTES_AT);
  if (eventsBytes === undefined || readNumber(input, at + EVENTS_OFFSET_AT) !== EVENTS_BYTES_AT) return undefined;
  const isWithinInput = at + TUPLE_BYTES + toWords(eventsBytes) * WORD <= input.length;
  return isWithinInput && count > 0 && count * EVENT_BYTES_MIN <= eventsBytes ? { at, count, eventsBytes } : undefined;
}

/** The number of words that contain this many bytes. */
export function toWords(bytes: number): number {
  return Math.ceil(bytes / WORD);
}

/** The word at `at` as a number; undefined if it is 2^32 or more. */
function readNumber(input: Buffer, at: number): number | undefined {
  return isZero(input, at, WORD - 4) ? input.readUInt32BE(at + WORD - 4) : undefined;
}

function isZero(input: Buffer, at: number, bytes: number): boolean {
  for (let index = at; index < at + bytes; index += 1) if (input[index] !== 0) return false;
  return true;
}
