import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { BrokerError } from "../errors/broker-error.ts";
import { quote } from "../errors/quote.ts";

/** An event's identifier on the interface, such as `2cf24dba-59-1124`: topic digest, sequence and block number. */
export type EventId = string & { readonly __brand: "EventId" };

/** The parts of an eventId. `topicDigest` is the first 8 hex digits of SHA-256 of the topic's name in UTF-8. */
export interface EventIdParts {
  readonly topicDigest: string;
  readonly sequence: number;
  readonly blockNumber: number;
}

/** Longest eventId, in characters: 8 + 1 + 16 + 1 + 16; both numbers are safe integers. */
export const eventIdCharactersMax = 42;

const pattern = /^([0-9a-f]{8})-([1-9][0-9]{0,15})-(0|[1-9][0-9]{0,15})$/;

/** The first 8 hex digits of SHA-256 of a topic's name; two topics may have the same digest. */
export function topicDigest(topic: string): string {
  return bytesToHex(sha256(utf8ToBytes(topic)).subarray(0, 4));
}

/** Joins the parts; the reverse of {@link parseEventId}. */
export function formatEventId(parts: EventIdParts): EventId {
  const text = `${parts.topicDigest}-${parts.sequence}-${parts.blockNumber}`;
  return text as EventId; // The only place that creates the branded type.
}

/** Splits an eventId into its parts. @throws BrokerError 100300 blank, 100301 too long, 100302 malformed. */
export function parseEventId(text: string): EventIdParts {
  if (text.trim() === "") throw new BrokerError("eventIdBlank");
  if (text.length > eventIdCharactersMax) {
    throw new BrokerError("eventIdTooLong", { details: `${text.length} characters, at most ${eventIdCharactersMax}` });
  }
  const match = pattern.exec(text);
  const [, digest, sequenceText, blockText] = match ?? [];
  const sequence = Number(sequenceText);
  const blockNumber = Number(blockText);
  if (digest === undefined || !Number.isSafeInteger(sequence) || !Number.isSafeInteger(blockNumber)) {
    throw new BrokerError("eventIdIllegal", {
      details: `${quote(text)} is not <8 lower-case hex digits>-<sequence>-<block>`,
    });
  }
  return { topicDigest: digest, sequence, blockNumber };
}
