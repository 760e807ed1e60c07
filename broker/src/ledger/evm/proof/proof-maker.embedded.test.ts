import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { topicRegistryBytecode } from "@stele/contracts";
import { fromHex, keccak256, Signer } from "@stele/eth/node";
import { encodeEvents, verifyProof } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { testKey } from "../testing/evm-harness.ts";
import { Stranger } from "../testing/stranger.ts";
import { someEvents } from "./testing/anvil-chain.ts";
import { addressOf, blockHash, prove } from "./testing/prove.ts";

const topic = "proof/embedded";
const signer = new Signer(testKey("proofs"));

let chain: EmbeddedChain;
let registry: Address;
let writer: Stranger;

beforeAll(async () => {
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts: [signer.address] });
  writer = new Stranger(chain, { signer, registry: async () => registry });
  registry = (await writer.send(fromHex(topicRegistryBytecode))) ?? "0x";
  await writer.open(topic);
});

afterAll(async () => {
  await chain.stop();
});

describe("proofs from the embedded chain", () => {
  test("proves events of two batches of one transaction", async () => {
    const batches = [someEvents(1), someEvents(100)];
    const address = addressOf(registry, topic);
    await writer.publish(batches.map((events) => ({ address, count: events.length, events: encodeEvents(events) })));
    const blockNumber = Number(await chain.request({ method: "eth_blockNumber", params: [] }));
    const hash = await blockHash(chain, blockNumber);
    for (const [firstSequence, events, index] of [
      [1, batches[0] ?? [], 0],
      [2, batches[1] ?? [], 0],
      [2, batches[1] ?? [], 99],
    ] as const) {
      const proof = await prove({ provider: chain, registry }, { topic, firstSequence, blockNumber, events }, index);
      const result = verifyProof(proof, hash, { expectedRegistry: registry, keccak: keccak256 });
      expect(result).toMatchObject({ status: "verified", event: { sequence: firstSequence + index } });
    }
  });
});
