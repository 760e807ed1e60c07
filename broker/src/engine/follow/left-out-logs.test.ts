import { expect, it, onTestFinished } from "vitest";
import type { Ledger, LedgerBlock } from "../../ports/ledger.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("reads a block again whose events the chain left out, and delivers them in order", async () => {
  let leavesOut = false;
  const withoutEvents = (block: LedgerBlock): LedgerBlock => {
    const isLeftOut = leavesOut && block.entries.some(({ kind }) => kind === "events-committed");
    if (isLeftOut) leavesOut = false;
    return isLeftOut ? { ...block, entries: [] } : block;
  };
  const toLedger = (ledger: Ledger): Ledger => {
    const follow = ledger.follow.bind(ledger);
    ledger.follow = async function* (after, signal) {
      for await (const step of follow(after, signal))
        yield step.kind === "blocks" ? { kind: "blocks", blocks: step.blocks.map(withoutEvents) } : step;
    };
    return ledger;
  };
  const cluster = await TestCluster.start(2, { toLedger });
  onTestFinished(() => cluster.stopAll());
  for (const topic of ["a", "b"]) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  const id = await cluster.run(cluster.subscribe(1, "#"));
  await cluster.run(cluster.publish(0, "a", "1"));
  leavesOut = true;
  expect(await cluster.run(cluster.publish(0, "a", "2"))).toBe("TIMEOUT");
  await cluster.run(cluster.publish(0, "b", "3"));
  await cluster.clock.advance(5_000);
  const texts = () =>
    cluster.sink.attempts
      .filter(({ subscription }) => subscription.id === id)
      .map(({ event }) => Buffer.from(event.content).toString());
  expect(texts()).toEqual(["1", "3"]);
  await cluster.run(cluster.publish(0, "a", "4"));
  await cluster.clock.advance(10_000);
  expect(texts().slice(-3)).toEqual(["2", "3", "4"]);
  expect(cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.ready)).toEqual([true, true]);
});
