import { encodeEvents } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** Makes the database lose its newest blocks, as a server does that fails over to an older copy. Returns the newest block that is left. */
async function loseBlocks(count: number): Promise<number> {
  const { store } = cluster.shared;
  const kept = (await store.listBlocks(defaultGroupId, { atMost: count + 1 }))[count];
  if (kept === undefined) throw new Error("the index has fewer blocks");
  const findHead = store.findHead.bind(store);
  await store.rollBack(defaultGroupId, kept);
  // Such a server has also lost the number of rollbacks.
  store.findHead = async (id) => {
    const head = await findHead(id);
    return head && { ...head, generation: head.generation - 1 };
  };
  return kept.number;
}

/** Commits an event by a transaction that no node of the cluster sent. */
function publishFromOutside(text: string): void {
  const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
  cluster.chain.publish([{ address: topicAddress(parseTopicName("a")), count: 1, events }]);
}

function contentsOf(subscriptionId: string): readonly string[] {
  const own = cluster.sink.attempts.filter(({ subscription }) => subscription.id === subscriptionId);
  return own.map(({ event }) => Buffer.from(event.content).toString());
}

it("no subscription misses an event if the database loses blocks in an outage in which the chain replaces them", async () => {
  cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const ids = await Promise.all([0, 1, 0, 1].map((index) => cluster.run(cluster.subscribe(index, "a"))));
  for (const text of ["old 1", "old 2"]) await cluster.run(cluster.publish(0, "a", text));
  await cluster.clock.advance(3_000);
  for (const { gate } of cluster.nodes) gate.cut("refused");
  cluster.chain.cutBack(await loseBlocks(2));
  for (const text of ["new 1", "new 2"]) publishFromOutside(text);
  await cluster.clock.advance(1_000);
  for (const { gate } of cluster.nodes) gate.heal();
  await cluster.clock.advance(10_000);
  const { head } = cluster.chain;
  expect(cluster.nodes.map(({ broker }) => broker.health()[0]?.indexedBlock)).toEqual([head, head]);
  for (const id of ids) expect(contentsOf(id)).toEqual(["old 1", "old 2", "new 1", "new 2"]);
});
