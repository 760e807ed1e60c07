import { encodeEvents } from "@stele/wire";
import { expect, it, onTestFinished } from "vitest";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("a publish returns TIMEOUT if the index has another event in its place, because a reorg moved it", async () => {
  let isDisplaced = false;
  const toLedger = (ledger: Ledger): Ledger => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (batches, ...call) => {
      if (!isDisplaced) return append(batches, ...call);
      const blockNumber = cluster.chain.head + 1;
      const events = encodeEvents([{ content: Buffer.from("other"), extensions: [] }]);
      cluster.chain.publish([{ address: topicAddress("a"), count: 1, events }]);
      await append(batches, ...call);
      return [{ status: "committed", firstSequence: 2, blockNumber }]; // As on the branch that a reorg has removed.
    };
    return ledger;
  };
  const cluster = await TestCluster.start(2, { toLedger });
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.run(cluster.publish(0, "a", "before"));
  isDisplaced = true;
  expect(await cluster.run(cluster.publish(0, "a", "mine"))).toBe("TIMEOUT");
});
