import {
  findBytes,
  type Hex,
  hashBytes,
  isSameBytes,
  type Keccak256,
  MalformedError,
  portableKeccak256,
  toHexText,
} from "@stele/eth";
import type { BatchEvent } from "../batch/encode-events.ts";
import { leafHash, verifyPath } from "../batch/merkle.ts";
import { readBatchEvents, readPublished } from "./published-log.ts";

/** An event's place in its batch: index from 0, number of events, and the sibling hashes from its leaf up to the eventsRoot. */
export interface CompactProof {
  readonly index: number;
  readonly count: number;
  readonly path: readonly Uint8Array[];
}

const pattern = /^(0|[1-9][0-9]{0,9})\/([1-9][0-9]{0,9})\/([A-Za-z0-9_-]*)$/;

/** `<index>/<count>/<path>`, where the path is the concatenated sibling hashes in Base64url without padding; empty for a batch of one event. */
export function formatCompactProof({ index, count, path }: CompactProof): string {
  return `${index}/${count}/${toBase64Url(path)}`;
}

/** The reverse of {@link formatCompactProof}. Undefined for any other text, so that each proof has exactly one text. */
export function findCompactProof(text: string): CompactProof | undefined {
  const [, index, count, base64] = pattern.exec(text) ?? [];
  if (index === undefined || count === undefined || base64 === undefined) return undefined;
  const path = fromBase64Url(base64);
  const proof = { index: Number(index), count: Number(count), path: path ?? [] };
  if (path?.length !== pathLength(proof) || formatCompactProof(proof) !== text) return undefined;
  return proof;
}

/** A log as a node returns it: topics and data in hex. */
export interface LogText {
  readonly topics: readonly string[];
  readonly data: string;
}

/** A batch whose log passed the check: number and root of the events match the log's claims. */
export interface CheckedBatch {
  /** Address of the topic. */
  readonly topicAddress: Hex;
  readonly firstSequence: number;
  /** The account that called the registry. */
  readonly publisher: Hex;
  readonly eventsRoot: Uint8Array;
  readonly events: readonly BatchEvent[];
}

/**
 * The batch of an `EventsPublished` log. Undefined for another log, and for a batch whose count or root does not match: readers skip such a batch.
 * Hashes every event, so call it once per log. The caller must check that the registry wrote the log.
 */
export function findCheckedBatch(log: LogText, keccak: Keccak256 = portableKeccak256): CheckedBatch | undefined {
  const topics = log.topics.map((topic) => findBytes(topic.toLowerCase()));
  const data = findBytes(log.data.toLowerCase());
  if (data === undefined || !topics.every((topic) => topic !== undefined)) return undefined;
  try {
    const batch = readPublished({ topics, data }, keccak);
    const { topic, firstSequence, sender, eventsRoot } = batch;
    const addresses = { topicAddress: toHexText(topic), publisher: toHexText(sender) };
    return { ...addresses, firstSequence, eventsRoot, events: readBatchEvents(batch) };
  } catch (error) {
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}

/** What a notification claims about the place of its event, and the batch to compare with. */
export interface CompactClaim {
  /** The value of the extension with the compact proof. */
  readonly proof: string;
  /** The event without the four extensions that say where it is on the chain. */
  readonly event: BatchEvent;
  /** The batch that {@link findCheckedBatch} returned for the log. */
  readonly batch: CheckedBatch | undefined;
}

/**
 * Whether the batch contains the event at the place that the compact proof names. The proof must claim the batch's number of events, and its path must lead
 * from the event, at its index, to the batch's root. The event's sequence is the batch's firstSequence plus the index.
 */
export function verifyCompactProof(
  { proof: text, event, batch }: CompactClaim,
  keccak: Keccak256 = portableKeccak256,
): boolean {
  const proof = findCompactProof(text);
  const listed = proof === undefined ? undefined : batch?.events[proof.index];
  if (proof === undefined || batch === undefined || listed === undefined) return false;
  if (batch.events.length !== proof.count) return false;
  const leaf = leafHash(proof.index, event, keccak);
  return (
    isSameBytes(leaf, leafHash(proof.index, listed, keccak)) &&
    verifyPath({ leaf, path: proof.path, root: batch.eventsRoot }, keccak)
  );
}

/** Number of hashes in the path of a leaf; -1 if there is no such leaf. There is one hash for each level at which the leaf or its ancestor has a sibling. */
function pathLength({ index, count }: Pick<CompactProof, "index" | "count">): number {
  if (index >= count) return -1;
  let length = 0;
  for (let place = index, left = count; left > 1; left = Math.ceil(left / 2)) {
    if (place % 2 === 1 || place + 1 < left) length += 1;
    place = Math.floor(place / 2);
  }
  return length;
}

function toBase64Url(path: readonly Uint8Array[]): string {
  const binary = path.map((hash) => String.fromCharCode(...hash)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text: string): Uint8Array[] | undefined {
  const binary = decodeBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
  if (binary === undefined || binary.length % hashBytes !== 0) return undefined;
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return Array.from({ length: bytes.length / hashBytes }, (_, index) =>
    bytes.slice(index * hashBytes, (index + 1) * hashBytes),
  );
}

function decodeBase64(text: string): string | undefined {
  try {
    return atob(text);
  } catch {
    return undefined;
  }
}
