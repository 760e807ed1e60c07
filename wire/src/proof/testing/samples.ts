import { readFileSync } from "node:fs";
import { checkProof, type Proof } from "../proof-schema.ts";

/** A proof of an event on a real chain (anvil), with the values that its verification needs. */
export interface ProofSample {
  readonly what: string;
  readonly blockHash: string;
  readonly registry: string;
  readonly proof: Proof;
}

export const samples: readonly ProofSample[] = readSamples();

function readSamples(): readonly ProofSample[] {
  const text = readFileSync(new URL("proofs.json", import.meta.url), "utf8");
  const rows = JSON.parse(text) as readonly ProofSample[]; // The file beside this one; each proof is checked below.
  for (const { proof } of rows) if (checkProof(proof).status !== "proof") throw new Error("a sample is not a proof");
  return rows;
}

/** Pseudo-random numbers that are the same in every run: a linear congruential generator. */
export function createDice(seed: number): (sides: number) => number {
  let state = seed >>> 0;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}
