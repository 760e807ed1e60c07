import { expect, it, onTestFinished } from "vitest";
import type { Ledger } from "../../ports/ledger.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("follows again only after a pause if one reorg follows another without a new block", async () => {
  let [coming, seen] = [0, 0];
  const toLedger = (ledger: Ledger): Ledger => {
    const follow = ledger.follow.bind(ledger);
    ledger.follow = async function* (after, signal) {
      if (coming === 0)
        for await (const step of follow(after, signal)) {
          yield step;
          if (coming > 0) break;
        }
      if (coming === 0) return;
      coming -= 1;
      seen += 1;
      yield { kind: "reorganised", common: undefined };
    };
    return ledger;
  };
  const cluster = await TestCluster.start(1, { toLedger });
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  coming = 1_000;
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(2_000);
  expect(seen).toBeGreaterThan(2);
  expect(seen).toBeLessThan(100);
  coming = 0;
  await cluster.clock.advance(5_000);
  expect(cluster.node(0).broker.groupHealth()).toMatchObject([{ ready: true, indexedBlock: cluster.chain.head }]);
});
