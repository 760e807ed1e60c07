import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

/** What a publish asks for. Extensions count in the order of their keys, since JSON objects and query strings have none. */
export interface PublishRequest {
  readonly topic: string;
  readonly content: Uint8Array;
  readonly extensions: readonly (readonly [key: string, value: string])[];
}

const lengthBytes = 4;

/** SHA-256, in hex, of what a publish asks for: equal for repeats of one request only. Each part is preceded by its length. */
export function publishDigest({ topic, content, extensions }: PublishRequest): string {
  const sorted = extensions.toSorted(([left], [right]) => (left < right ? -1 : Number(left > right)));
  const texts = [topic, ...sorted.flat()].map((text) => utf8ToBytes(text));
  return bytesToHex(sha256(concatBytes(...[content, ...texts].flatMap((part) => [toLength(part), part]))));
}

function toLength({ length }: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(lengthBytes);
  new DataView(bytes.buffer).setUint32(0, length);
  return bytes;
}
