import { expect, it } from "vitest";
import { BrokerError } from "@stele/wire";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const retentionMs = 60_000;

it("a node that lost the index's lease no longer warns that it cannot drop old copies", async () => {
  const failing = new Set([0, 1]);
  const cluster = await TestCluster.start(2, {
    retentionMs,
    toLedger: (ledger, index) => {
      const read = ledger.readCommitted.bind(ledger);
      ledger.readCommitted = async (batches, signal) => {
        if (failing.has(index)) throw new BrokerError("chainUnreachable");
        return read(batches, signal);
      };
      return ledger;
    },
  });
  const warningOf = (index: number) => cluster.node(index).broker.health()[0]?.warning;
  const former = await cluster.findFollower();
  await cluster.run(cluster.node(former).broker.open({ topic: "t", groupId: undefined }));
  await cluster.run(cluster.publish(former, "t", "old"));
  for (let block = 0; block <= reorganisationBlocksMax; block += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(2 * retentionMs);
  cluster.chain.sealEmpty();
  await cluster.clock.advance(10_000);
  expect(warningOf(former)).toMatch(/old events stay in the store/);
  failing.delete(1 - former);
  cluster.node(former).gate.halt();
  await cluster.clock.advance(20_000);
  cluster.node(former).gate.resume();
  await cluster.clock.advance(20_000);
  expect(await cluster.findFollower()).toBe(1 - former);
  expect([warningOf(0), warningOf(1)]).toEqual([undefined, undefined]);
  await cluster.stopAll();
});
