import "./no-eval.ts";
import { type Proof, type ProofResult, readBlockHash, verifyProof } from "@stele/client/proof";

export { readBlockHash };

export interface Trusted {
  readonly blockHash: string;
  /** The registry whose events count; any registry if undefined. */
  readonly registry: string | undefined;
}

/** Verifies a proof in this page. @throws TypeError if `blockHash` is not a hash, or `registry` is not an address. */
export function verify(proof: Proof, { blockHash, registry }: Trusted): ProofResult {
  return verifyProof(proof, blockHash, registry === undefined ? {} : { expectedRegistry: registry });
}
