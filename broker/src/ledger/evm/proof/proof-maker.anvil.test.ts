import { keccak256 } from "@stele/eth/node";
import { type Proof, type ProofResult, verifyProof } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EvmProvider } from "../endpoint/rpc.ts";
import { AnvilChain, account, someEvents } from "./testing/anvil-chain.ts";
import { blockHash, type Published, prove } from "./testing/prove.ts";

const topic = "proof/anvil";

let chain: AnvilChain;

beforeAll(async () => {
  chain = await AnvilChain.start();
  await chain.open(topic);
});

afterAll(async () => {
  await chain.stop();
});

async function verify(proof: Proof, on: AnvilChain = chain): Promise<ProofResult> {
  const blockNumber = Number(proof.event.eventId.split("-")[2]);
  const trusted = await blockHash(on.provider, blockNumber);
  return verifyProof(proof, trusted, { expectedRegistry: on.registry, keccak: keccak256 });
}

/** Proves the events of a batch at these indexes, and checks each proof against the chain. */
async function expectProven(batch: Published | undefined, indexes: readonly number[], on = chain): Promise<void> {
  if (batch === undefined) throw new Error("no batch");
  for (const index of indexes) {
    const result = await verify(await prove(on, batch, index), on);
    expect(result).toMatchObject({
      status: "verified",
      event: {
        topic: batch.topic,
        sequence: batch.firstSequence + index,
        content: Uint8Array.from(batch.events[index]?.content ?? []),
        extensions: batch.events[index]?.extensions,
        blockNumber: batch.blockNumber,
        publisher: account,
        registry: on.registry,
      },
    });
  }
}

describe("proofs from anvil", () => {
  test("proves the only event of a batch", async () => {
    const [batch] = await chain.publish(topic, [someEvents(1)]);
    await expectProven(batch, [0]);
  });

  test.each([2, 3, 5, 64, 1000])(
    "proves the first, the middle and the last two events of a batch of %i",
    async (count) => {
      const [batch] = await chain.publish(topic, [someEvents(count)]);
      await expectProven(batch, [0, count >> 1, count - 2, count - 1]);
    },
  );

  test("proves events of three batches in one transaction, two of them with the same events", async () => {
    const batches = await chain.publish(topic, [someEvents(2), someEvents(3), someEvents(2)]);
    for (const batch of batches) await expectProven(batch, [0, 1]);
  });

  test.each([
    ["legacy", {}],
    ["with an access list", { accessList: [] }],
    ["EIP-1559", { maxFeePerGas: "0x4a817c800", maxPriorityFeePerGas: "0x0" }],
  ])("proves an event of a transaction of this kind: %s", async (_, fields) => {
    const [batch] = await chain.publish(topic, [someEvents(2)], fields);
    await expectProven(batch, [1]);
  });

  test("proves events with empty content, long content and non-ASCII text", async () => {
    const [batch] = await chain.publish(topic, [
      [
        { content: Buffer.alloc(0), extensions: [] },
        { content: Buffer.alloc(60_000, 0xee), extensions: [["svc-a", ""]] },
        {
          content: Buffer.from("ü"),
          extensions: [
            ["svc-ü", "日本 🗿"],
            ["svc-ü", "twice"],
            ["7", "\u0000"],
          ],
        },
      ],
    ]);
    await expectProven(batch, [0, 1, 2]);
  });

  test("in a block of 300 transactions, proves an event of each of 11 transactions", async () => {
    const batches = Array.from({ length: 300 }, (_, index) => someEvents(1 + (index % 3), `of ${index}`));
    await chain.inOneBlock(async () => {
      for (const events of batches) await chain.sendBatches(topic, [events], { gas: "0x493e0" });
    });
    const published = await chain.recordPublished(topic, batches);
    for (const index of [0, 1, 15, 16, 126, 127, 128, 129, 255, 256, 299]) await expectProven(published[index], [0]);
  });

  test.each([2, 17, 128, 129])(
    "in a block of %i transactions, proves an event of the last transaction",
    async (count) => {
      const batches = Array.from({ length: count }, (_, index) => someEvents(1, `of ${index}`));
      await chain.inOneBlock(async () => {
        for (const events of batches) await chain.sendBatches(topic, [events], { gas: "0x493e0" });
      });
      await expectProven((await chain.recordPublished(topic, batches)).at(-1), [0]);
    },
  );

  test("proves an event with an endpoint that lacks eth_getBlockReceipts", async () => {
    const [batch] = await chain.publish(topic, [someEvents(2)]);
    if (batch === undefined) throw new Error("no batch");
    const asked: string[] = [];
    const provider: EvmProvider = {
      request: (request) => {
        asked.push(request.method);
        if (request.method !== "eth_getBlockReceipts") return chain.provider.request(request);
        return Promise.reject(Object.assign(new Error("the method does not exist"), { code: -32601 }));
      },
    };
    const proof = await prove({ provider, registry: chain.registry }, batch, 0);
    expect(await verify(proof)).toMatchObject({ status: "verified" });
    expect(asked).toContain("eth_getTransactionReceipt");
  });

  test("proves events of a batch of 20,000", async () => {
    const [batch] = await chain.publish(topic, [someEvents(20_000)], { gas: "0x3b9aca00" });
    await expectProven(batch, [0, 12_345, 19_999]);
  });

  test.each(["berlin", "london", "paris", "shanghai", "cancun", "prague", "osaka"])(
    "proves an event on the fork %s",
    async (fork) => {
      const forked = await AnvilChain.start(["--hardfork", fork]);
      try {
        await forked.open(topic);
        const [batch] = await forked.publish(topic, [someEvents(3)]);
        await expectProven(batch, [2], forked);
      } finally {
        await forked.stop();
      }
    },
  );
});
