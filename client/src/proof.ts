export { type BlockHashOptions, readBlockHash } from "./block-hash.ts";
export { checkProof, parseProof, type ParsedProof, type Proof } from "@stele/wire";
export {
  type CheckedBatch,
  type CompactProof,
  findCheckedBatch,
  findCompactProof,
  type LogText,
  verifyCompactProof,
} from "@stele/wire";
export { type ProofResult, type ProvenEvent, topicAddress, type VerifyOptions, verifyProof } from "@stele/wire";
