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

/** Copies a text: Node joins a UUID from 19 strings, about 600 bytes, which would stay in memory as long as the UUID. */
function flat(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
