import { hashHeap } from "./keccak/hash-heap.ts";
import { curve } from "./signature/curve.ts";

/** The implementations that sign and hash in this process. */
export const cryptoInUse = { signing: curve.implementation, hashing: hashHeap.kind } as const;
