import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

/** What a publish asks for. The order of extensions does not count, since JSON objects and query strings have none. */
export interface PublishRequest {
  readonly topic: string;
  readonly content: Uint8Array;
  readonly extensions: readonly (readonly [key: string, value: string])[];
}

const lengthBytes = 4;

/** SHA-256, in hex, of a publish request: equal only for repeats of the same request. Each part follows its length, so that bytes cannot move between parts. */
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
