import { randomBytes, randomUUID } from "node:crypto";

/** Randomness from the machine. */
export interface SystemRandomness {
  fraction(): number;
  uuid(): string;
  bytes(count: number): Uint8Array;
}

export function createSystemRandomness(): SystemRandomness {
  return { fraction: () => Math.random(), uuid: () => flat(randomUUID()), bytes: (count) => randomBytes(count) };
}

/** Node joins an UUID from 19 strings, which stay in memory, about 600 bytes, as long as the result. */
function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
