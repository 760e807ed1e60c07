import type { BatchEvent } from "../batch/encode-events.ts";
import { type Keccak256, portableKeccak256 } from "../batch/keccak.ts";
import { hashBytes, leafHash, verifyPath } from "../batch/merkle.ts";
import { findBytes } from "./hex.ts";

/** An event's place in its batch: index from 0, number of events, and the sibling hashes from its leaf up to the eventsRoot. */
export interface CompactProof {
  readonly index: number;
  readonly count: number;
  readonly path: readonly Uint8Array[];
}

const pattern = /^(0|[1-9][0-9]{0,9})\/([1-9][0-9]{0,9})\/([A-Za-z0-9_-]*)$/;

/** `<index>/<count>/<path>`, the path's hashes one after the other in Base64url without padding; empty for a batch of one. */
export function formatCompactProof({ index, count, path }: CompactProof): string {
  return `${index}/${count}/${toBase64Url(path)}`;
}

/** The reverse of {@link formatCompactProof}; undefined for any other text, so that no two texts say the same. */
export function findCompactProof(text: string): CompactProof | undefined {
  const [, index, count, base64] = pattern.exec(text) ?? [];
  if (index === undefined || count === undefined || base64 === undefined) return undefined;
  const path = fromBase64Url(base64);
  const proof = { index: Number(index), count: Number(count), path: path ?? [] };
  if (path?.length !== pathLength(proof) || formatCompactProof(proof) !== text) return undefined;
  return proof;
}

/**
 * Whether a compact proof leads from the event to the eventsRoot. The root stands in the log `EventsPublished` of the event's topic, in
 * the transaction and block that came with the proof; the event's sequence is the log's firstSequence plus the index.
 */
export function verifyCompactProof(
  claim: { readonly proof: string; readonly event: BatchEvent; readonly eventsRoot: string },
  keccak: Keccak256 = portableKeccak256,
): boolean {
  const proof = findCompactProof(claim.proof);
  const root = findBytes(claim.eventsRoot.toLowerCase());
  if (proof === undefined || root === undefined) return false;
  return verifyPath({ leaf: leafHash(proof.index, claim.event, keccak), path: proof.path, root }, keccak);
}

/** Siblings of a leaf: one a level, but where it is the odd one at the end, which is carried up. */
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
