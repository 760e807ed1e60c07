import { keccak256, toBuffer } from "@stele/eth/node";
import type { Log } from "../blocks/log.ts";

/** Where a transaction is: block number × 2^20 + index in the block. Exact up to block 2^33. */
export type Place = number;

const INDEX_FACTOR = 2 ** 20;
const KEY_BYTES = 6;

export function toPlace(blockNumber: bigint, index: number): Place {
  return Number(blockNumber) * INDEX_FACTOR + index;
}

export function fromPlace(place: Place): { readonly blockNumber: bigint; readonly index: number } {
  return { blockNumber: BigInt(Math.floor(place / INDEX_FACTOR)), index: place % INDEX_FACTOR };
}

/** The first 6 bytes of a hash as an integer. */
export function toHashKey(hash: Uint8Array): number {
  return toBuffer(hash).readUIntBE(0, KEY_BYTES);
}

export function addressKey(address: Uint8Array): number {
  return toHashKey(keccak256(Buffer.concat([Uint8Array.of(0), address])));
}

export function topicKey(topic: Uint8Array): number {
  return toHashKey(keccak256(Buffer.concat([Uint8Array.of(1), topic])));
}

/** The index keys of one transaction's logs, each once. */
export function logKeys(logs: readonly Log[]): ReadonlySet<number> {
  const keys = new Map<string, number>();
  let previous: Log | undefined;
  for (const log of logs) {
    const { address, topics } = log;
    // Logs of one transaction share objects: comparing references saves a look-up.
    if (address !== previous?.address) remember(keys, address, addressKey);
    if (topics[0] !== undefined && topics[0] !== previous?.topics[0]) remember(keys, topics[0], topicKey);
    previous = log;
  }
  return new Set(keys.values());
}

function remember(keys: Map<string, number>, bytes: Uint8Array, toKey: (bytes: Uint8Array) => number): void {
  const text = toBuffer(bytes).toString("latin1");
  if (!keys.has(text)) keys.set(text, toKey(bytes));
}
