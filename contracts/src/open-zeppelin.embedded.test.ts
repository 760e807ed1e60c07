import { readFileSync } from "node:fs";
import { startEmbeddedChain } from "@stele/chain";
import { checkProof, type Proof, verifyProof } from "@stele/wire";
import { custom, type Hex, hexToBytes, stringToHex, toRlp } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileEventVerifier } from "./testing/compile-event-verifier.ts";
import { alice, RegistryFixture } from "./testing/registry-fixture.ts";

// Proofs of events on a real chain, with the hashes of their blocks.
const samplesFile = new URL("../../wire/src/proof/testing/proofs.json", import.meta.url);
const samples = JSON.parse(readFileSync(samplesFile, "utf8")) as readonly {
  readonly what: string;
  readonly blockHash: string;
  readonly proof: Proof;
}[]; // Each proof is checked below.

const { abi, bytecode } = compileEventVerifier();
let stop = async (): Promise<void> => {};
let isInBatch: (call: Call) => Promise<unknown>;

interface Call {
  readonly path: readonly string[];
  readonly root: string;
  readonly event: Hex;
}

beforeAll(async () => {
  const chain = await startEmbeddedChain({ file: ":memory:", chainId: 31_337, genesisAccounts: [alice.address] });
  stop = () => chain.stop();
  const fixture = await RegistryFixture.deploy(custom(chain, { retryCount: 0 }));
  const address = await fixture.deployCode(bytecode);
  isInBatch = ({ path, root, event }) =>
    fixture.client.readContract({ address, abi, functionName: "isInBatch", args: [path, root, event] });
});

afterAll(() => stop());

/** The call that verifies the event of a proof: its index, content and extensions in RLP, its path, and the root from the log. */
function callOf(proof: Proof, root: string): Call {
  const { content, extensions } = proof.event;
  const index = proof.batch.index === 0 ? "0x" : (`0x${proof.batch.index.toString(16).padStart(2, "0")}` as const);
  const texts = extensions.flat().map((text) => stringToHex(text));
  return { path: proof.batch.path, root, event: toRlp([index, content as Hex, texts]) }; // proofSchema checked the form.
}

describe.each(samples)("OpenZeppelin's MerkleProof with the proof of $what", ({ proof, blockHash }) => {
  const verified = verifyProof(proof, blockHash);
  const root = verified.status === "verified" ? verified.event.eventsRoot : "";
  const call = callOf(proof, root);

  test("OpenZeppelin's MerkleProof accepts the event with the proof's path and root", async () => {
    expect(checkProof(proof).status).toBe("proof");
    expect(await isInBatch(call)).toBe(true);
  });

  test("OpenZeppelin's MerkleProof refuses the event if a hash of its path, the root or the event changes, or the path grows", async () => {
    for (const [place, hash] of call.path.entries()) {
      const path = call.path.with(place, changed(hash));
      expect(await isInBatch({ ...call, path })).toBe(false);
    }
    expect(await isInBatch({ ...call, root: changed(root) })).toBe(false);
    expect(await isInBatch({ ...call, event: changed(call.event) as Hex })).toBe(false); // `changed` returns hexadecimal.
    expect(await isInBatch({ ...call, path: [...call.path, root] })).toBe(false);
  });

  test("OpenZeppelin's MerkleProof refuses an inner node of the tree as an event", async () => {
    const [first = root, ...rest] = call.path;
    const event = toRlp([hexToBytes(first as Hex)]); // A hash of the proof.
    expect(await isInBatch({ ...call, path: rest, event })).toBe(false);
  });
});

/** `hex` with another last byte. */
function changed(hex: string): string {
  return hex.slice(0, -2) + (hex.endsWith("00") ? "01" : "00");
}
