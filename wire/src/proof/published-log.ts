import { utf8ToBytes } from "@noble/hashes/utils.js";
import { isSameBytes, type Keccak256, MalformedError, portableKeccak256, toSafeInteger } from "@stele/eth";
import { decodeEvents } from "../batch/decode-events.ts";
import type { BatchEvent } from "../batch/encode-events.ts";
import { merkleRoot } from "../batch/merkle.ts";
import type { ReceiptLog } from "./receipt.ts";

/** The registry's log of a batch. */
export interface PublishedBatch {
  /** Address of the topic. */
  readonly topic: Uint8Array;
  readonly firstSequence: number;
  /** The account that called the registry. */
  readonly sender: Uint8Array;
  readonly eventsRoot: Uint8Array;
  readonly count: number;
  readonly events: Uint8Array;
}

const word = 32;
const addressBytes = 20;
/** Words before the events: root, count, offset of the events, length of the events. */
const headWords = 4;
const topicCount = 4;
/** Byte offset of the events, after root, count and offset. */
const eventsOffset = 3 * word;

let signature: Uint8Array | undefined;

/** First topic of an `EventsPublished` log. */
function publishedSignature(keccak: Keccak256): Uint8Array {
  signature ??= keccak(utf8ToBytes("EventsPublished(address,uint64,address,bytes32,uint32,bytes)"));
  return signature;
}

/** Reads an `EventsPublished` log in the only form that the registry writes. @throws MalformedError for any other log. */
export function readPublished(
  { topics, data }: Pick<ReceiptLog, "topics" | "data">,
  keccak: Keccak256 = portableKeccak256,
): PublishedBatch {
  const [kind, topic, firstSequence, sender] = topics;
  const isPublished =
    kind !== undefined && isSameBytes(kind, publishedSignature(keccak)) && topics.length === topicCount;
  if (!isPublished || topic === undefined || firstSequence === undefined || sender === undefined) {
    throw new MalformedError("a log that is not EventsPublished");
  }
  const length = wordAt(data, 3);
  const padded = Math.ceil(length / word) * word;
  const start = headWords * word;
  const hasEventsOnly = wordAt(data, 2) === eventsOffset && data.length === start + padded;
  if (!hasEventsOnly || data.subarray(start + length).some((byte) => byte !== 0)) {
    throw new MalformedError("the data of an EventsPublished log is malformed");
  }
  return {
    topic: addressIn(topic),
    firstSequence: toSafeInteger(firstSequence),
    sender: addressIn(sender),
    eventsRoot: data.subarray(0, word),
    count: wordAt(data, 1),
    events: data.subarray(start, start + length),
  };
}

function addressIn(topic: Uint8Array): Uint8Array {
  return topic.subarray(word - addressBytes);
}

/**
 * The events of a batch. The registry does not decode events, so a reader checks count and root.
 * @throws MalformedError unless the bytes decode to `count` events with `eventsRoot`, and sequences stay below 2^53.
 */
export function readBatchEvents(batch: PublishedBatch): readonly BatchEvent[] {
  const { count, events, eventsRoot, firstSequence } = batch;
  const decoded = decodeEvents(events);
  if (decoded.length !== count) throw new MalformedError(`${decoded.length} events where ${count} were claimed`);
  if (!isSameBytes(merkleRoot(events), eventsRoot)) {
    throw new MalformedError("the events have another root than was claimed");
  }
  if (!Number.isSafeInteger(firstSequence + count - 1)) throw new MalformedError("sequences beyond 2^53 - 1");
  return decoded;
}

function wordAt(data: Uint8Array, index: number): number {
  const bytes = data.subarray(index * word, (index + 1) * word);
  if (bytes.length !== word) throw new MalformedError("data that is too short");
  return toSafeInteger(bytes);
}
