import { expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it("nodes rebuild an index that a starting node has emptied, although the chain has no new block", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const eventId = await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(5_000);
  await cluster.shared.store.rollBack(defaultGroupId, undefined);
  cluster.launch(2);
  await cluster.clock.advance(10_000);
  for (const { broker } of cluster.nodes) {
    expect(broker.groupHealth()).toMatchObject([{ ready: true, indexedBlock: cluster.chain.head }]);
    expect(await cluster.run(broker.getEvent({ eventId, groupId: undefined }))).toMatchObject({ eventId });
  }
});
