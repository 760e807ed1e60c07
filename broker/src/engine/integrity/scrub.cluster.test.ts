import { expect, it } from "vitest";
import { BrokerError } from "@stele/wire";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const hourMs = 3_600_000;
/** So that hours of virtual time pass quickly. */
const rarePolls = {
  membershipMs: 60_000,
  watchPollMs: 10_000,
  ownedPollMs: 20_000,
  balanceEveryMs: 30_000,
  followDelayMsMin: 5_000,
};
const topic = parseTopicName("orders");

it("a node that takes over the index's lease warns within about an hour of damage that the former holder found", async () => {
  const cluster = await TestCluster.start(2, { limits: rarePolls });
  const warningOf = (index: number) => cluster.node(index).broker.health()[0]?.warning;
  const former = await cluster.findFollower();
  await cluster.run(cluster.node(former).broker.open({ topic, groupId: undefined }));
  await cluster.run(cluster.publish(former, topic, "one"));
  const batch = await cluster.shared.store.findBatch(defaultGroupId, { topic, sequence: 1 });
  batch?.events.fill(0);
  cluster.chain.find = () => {
    throw new BrokerError("chainUnreachable");
  };
  await cluster.clock.advance(1.1 * hourMs);
  expect(warningOf(former)).toMatch(/the index is damaged/);
  cluster.node(former).gate.halt();
  await cluster.clock.advance(200_000);
  cluster.node(former).gate.resume();
  await cluster.clock.advance(200_000);
  expect(await cluster.findFollower()).toBe(1 - former);
  await cluster.clock.advance(1.1 * hourMs);
  expect(warningOf(1 - former)).toMatch(/the index is damaged/);
  await cluster.stopAll();
});
