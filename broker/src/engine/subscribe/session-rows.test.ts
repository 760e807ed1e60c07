import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { sessionOf, subscriptionOf } from "../../ports/store-examples.contract.ts";
import { positionZero } from "../../domain/position.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import { TestEngine } from "../testing/test-engine.ts";

const row = subscriptionOf(99, {
  delivery: sessionOf("MQTT"),
  filter: parseTopicFilter("#"),
  groupId: defaultGroupId,
  cursor: positionZero,
});
const other = "http://receiver/";

it("a session's row starts no callback worker, is listed, and cannot be continued as a callback", async () => {
  const engine = new TestEngine();
  await engine.store.insertSubscription(row, 0);
  await engine.broker.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
  const id = await engine.subscribe("a", { url: other });
  await engine.publish("a", "one");
  await engine.clock.advance(1_000);
  expect(engine.sink.attempts.map(({ subscription }) => subscription.id)).toEqual([id]);
  expect(await engine.listSubscriptions()).toMatchObject([
    { id, delivery: { kind: "webhook" }, notifyingCount: 0 },
    { id: row.id, delivery: { kind: "session", protocol: "MQTT" }, notifyingCount: 1 },
  ]);
  await expect(engine.subscribe("#", { subscriptionId: row.id })).rejects.toMatchObject({ code: 100_108 });
  await engine.stop();
});

it("a node starts no callback worker for a session's row that it owns", async () => {
  const cluster = await TestCluster.start(1);
  const [owner] = cluster.node(0).ids;
  await cluster.shared.store.insertSubscription({ ...row, owner }, 0);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const id = await cluster.run(cluster.subscribe(0, "a", { url: other }));
  await cluster.run(cluster.publish(0, "a", "one"));
  await cluster.clock.advance(10_000);
  expect(cluster.sink.attempts.map(({ subscription }) => subscription.id)).toEqual([id]);
  await cluster.stopAll();
});
