import { createHash } from "node:crypto";

/** The code of a registry of topics, whose `publish` the chain executes without interpreting it. */
export interface RegistryCode {
  /** SHA-256 of the code in hex, with zeros in place of its immutables. */
  readonly hash: string;
  /** Offsets and lengths of the immutables in the code. `publish` reads none of them. */
  readonly immutables: readonly (readonly [offset: number, bytes: number])[];
  /** Gas of the instructions of `publish` whose price does not depend on the arguments: `base` once, `perBatch` for each batch. */
  readonly publishGas: { readonly base: number; readonly perBatch: number };
}

/** Whether the code of a contract is the code of the registry. */
export function isRegistry(code: Uint8Array, { hash, immutables }: RegistryCode): boolean {
  if (immutables.some(([offset, bytes]) => offset + bytes > code.length)) return false;
  const masked = Buffer.from(code);
  for (const [offset, bytes] of immutables) masked.fill(0, offset, offset + bytes);
  return createHash("sha256").update(masked).digest("hex") === hash;
}
