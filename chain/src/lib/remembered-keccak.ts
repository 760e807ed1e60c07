import { keccak256, keccakInto, toBuffer } from "@stele/eth/node";
import { REMEMBERED_HASHES_MAX } from "../limits.ts";
import { Generations } from "./generations.ts";

/** Longest input that is worth remembering: a key of a map and the slot of the map. */
const INPUT_BYTES_MAX = 64;
const HASH_BYTES = 32;

const hashes = new Generations<Uint8Array>(REMEMBERED_HASHES_MAX);

/** As `keccak256`, for inputs that come again: each topic's address and slot does in every block that has its events. The caller changes nothing of it. */
export function rememberedKeccak(bytes: Uint8Array): Uint8Array {
  if (bytes.length > INPUT_BYTES_MAX) return keccak256(bytes);
  const key = toBuffer(bytes).toString("latin1");
  return hashes.get(key) ?? remember(key, bytes);
}

/** The same for short input that is given as latin1. */
export function rememberedKeccakOf(key: string): Uint8Array {
  return hashes.get(key) ?? remember(key, Buffer.from(key, "latin1"));
}

function remember(key: string, bytes: Uint8Array): Uint8Array {
  const hash = Buffer.allocUnsafeSlow(HASH_BYTES); // see ownPiece
  keccakInto(hash, 0, bytes);
  hashes.set(key, hash);
  return hash;
}
