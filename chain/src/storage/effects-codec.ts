import { decodeNodes, nodesBytes, writeNodes } from "../state/nodes-codec.ts";
import type { BlockEffects, IndexEntry } from "./unsaved-effects.ts";

const COUNT_BYTES = 4;
/** Bytes of a key or a place, each an integer that a double represents exactly. */
const NUMBER_BYTES = 8;
const ENTRY_BYTES = 2 * NUMBER_BYTES;

/** Encodes the effects of a block as its row stores them. */
export function encodeEffects({ nodes, places }: BlockEffects): Uint8Array {
  const nodesAt = COUNT_BYTES + places.length * ENTRY_BYTES;
  const bytes = Buffer.allocUnsafe(nodesAt + nodesBytes(nodes));
  let at = bytes.writeUInt32BE(places.length, 0);
  for (const { key, place } of places) at = bytes.writeDoubleBE(place, bytes.writeDoubleBE(key, at));
  writeNodes(bytes.subarray(nodesAt), nodes);
  return bytes;
}

/** Decodes the effects of a block. @throws RangeError if a length in `bytes` reaches past their end. */
export function decodeEffects(bytes: Buffer): BlockEffects {
  const count = bytes.readUInt32BE(0);
  const nodesAt = COUNT_BYTES + count * ENTRY_BYTES;
  const places: IndexEntry[] = [];
  for (let at = COUNT_BYTES; at < nodesAt; at += ENTRY_BYTES) {
    places.push({ key: bytes.readDoubleBE(at), place: bytes.readDoubleBE(at + NUMBER_BYTES) });
  }
  return { nodes: decodeNodes(bytes.subarray(nodesAt)), places };
}
