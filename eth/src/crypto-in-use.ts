import { keccak } from "./keccak/keccak.ts";
import { curve } from "./signature/curve.ts";

/** Which implementation signs and which hashes in this process. */
export const cryptoInUse = { signing: curve.implementation, hashing: keccak.implementation } as const;
