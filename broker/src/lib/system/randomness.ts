import { randomUUID } from "node:crypto";

/** Randomness from the machine. */
export interface SystemRandomness {
  fraction(): number;
  uuid(): string;
}

export function createSystemRandomness(): SystemRandomness {
  return { fraction: () => Math.random(), uuid: () => randomUUID() };
}
