import { encodeEvents } from "@stele/wire";
import { expect, it, onTestFinished } from "vitest";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const topics = ["a", "b"];
/** The block of a transaction on the branch that a reorg has removed. */
const removed = { blockHash: `0x${"99".repeat(32)}` } as const;

it("a publish returns SUCCESS if a reorg moved its transaction into another block of the same number", async () => {
  const cluster = await TestCluster.start(2, { toLedger: seeRemovedBlocks });
  onTestFinished(() => cluster.stopAll());
  for (const topic of topics) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  const publishing = topics.map((topic) => cluster.publish(0, topic, "mine"));
  expect(await cluster.run(Promise.all(publishing))).not.toContain("TIMEOUT");
});

it("if a reorg moved a transaction over many topics, its publishes look for their batches only until the deadline", async () => {
  let delayMs = 0;
  const limits = { transactionTimeoutMs: 1_000 };
  const cluster = await TestCluster.start(2, { toLedger: seeRemovedBlocks, delayMs: () => delayMs, limits });
  onTestFinished(() => cluster.stopAll());
  const many = Array.from({ length: 50 }, (_, index) => `t/${index}`);
  for (const topic of many) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  const publishAll = () => cluster.run(Promise.all(many.map((topic) => cluster.publish(0, topic, "mine"))));
  await publishAll(); // Now the node knows the topics, and sends all of them in one transaction.
  delayMs = 25;
  const before = cluster.clock.monotonic();
  expect(await publishAll()).toEqual(many.map(() => "TIMEOUT"));
  expect(cluster.clock.monotonic() - before).toBeLessThan(1_500);
});

it("all publishes of a transaction return TIMEOUT if a reorg moved one of them before the index had the block", async () => {
  let isDisplaced = false;
  const toLedger = (ledger: Ledger): Ledger => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (batches, ...call) => {
      if (!isDisplaced) return append(batches, ...call);
      expect(batches.map(({ topic }) => topic)).toEqual(["a", "b"]);
      const events = encodeEvents([{ content: Buffer.from("other"), extensions: [] }]);
      const [other] = cluster.chain.publish([{ address: topicAddress("a"), count: 1, events }, ...batches]);
      if (other?.status !== "committed") throw new Error("the topic is open");
      const { blockNumber, transactionHash } = other;
      const own = { ...removed, status: "committed", firstSequence: 2, blockNumber } as const;
      return [removed.blockHash, transactionHash].map((hash) => ({ ...own, transactionHash: hash }));
    };
    return ledger;
  };
  const cluster = await TestCluster.start(2, { toLedger });
  onTestFinished(() => cluster.stopAll());
  const publishAll = (text: string) => cluster.run(Promise.all(topics.map((topic) => cluster.publish(0, topic, text))));
  for (const topic of topics) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  expect(await publishAll("before")).not.toContain("TIMEOUT");
  isDisplaced = true;
  expect(await publishAll("mine")).toEqual(["TIMEOUT", "TIMEOUT"]);
});

/** A ledger that has seen each of its transactions in a block that a reorg has removed. */
function seeRemovedBlocks(ledger: Ledger): Ledger {
  const append = ledger.append.bind(ledger);
  ledger.append = async (...call) => (await append(...call)).map((outcome) => ({ ...outcome, ...removed }));
  return ledger;
}
