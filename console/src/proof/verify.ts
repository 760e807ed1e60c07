import "./no-eval.ts";
import { type Proof, type ProofResult, readBlockHash, verifyProof } from "@stele/client/proof";

export { readBlockHash };

export interface Trusted {
  readonly blockHash: string;
  /** The registry whose events count; any one if left out. */
  readonly registry: string | undefined;
}

/** Verifies a proof in this page. @throws TypeError where what is to be trusted is no hash or address. */
export function verify(proof: Proof, { blockHash, registry }: Trusted): ProofResult {
  return verifyProof(proof, blockHash, registry === undefined ? {} : { expectedRegistry: registry });
}
