import { hashHeap } from "./keccak/hash-heap.ts";
import { curve } from "./signature/curve.ts";

/** Which implementation signs and which hashes in this process. */
export const cryptoInUse = { signing: curve.implementation, hashing: hashHeap.kind } as const;
