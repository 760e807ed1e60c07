import { afterEach, expect, it } from "vitest";
import { before } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { allowAll, type Policy } from "../access/policy.ts";
import { defaultEngineLimits } from "../limits.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const subscriptionId = parseSubscriptionId("11111111-1111-4111-8111-111111111111");
const anew = { subscriptionId, offset: "OFFSET_FIRST", url: "http://down/" };

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

it("a node that missed a removal does not move the cursor of a new subscription with the same identifier", async () => {
  cluster = await TestCluster.start(2);
  const { store } = cluster.shared;
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId }));
  const first = await store.findSubscription(subscriptionId);
  const published = cluster.publish(0, "a", "1").catch(() => undefined);
  await cluster.clock.advance(defaultEngineLimits.progressDelayMs / 2);
  expect(cluster.sink.sequencesOf(subscriptionId)).toEqual([1]);
  expect(await store.findSubscription(subscriptionId)).toEqual(first); // The progress is noted, but not written yet.
  cluster.node(0).gate.halt();
  await cluster.run(cluster.unSubscribe(1, subscriptionId));
  cluster.sink.receive("http://down/", () => ({ status: "failed", reason: "down" }));
  await cluster.run(cluster.subscribe(1, "a", anew));
  const made = await store.findSubscription(subscriptionId);
  cluster.node(0).gate.resume();
  await cluster.clock.advance(3_000);
  await published;
  const [attempt] = cluster.sink.attempts;
  const cursor = attempt && before(attempt.event.position);
  const failing = { cursor, failedAttempts: 1, failingSince: expect.any(Number) as number };
  expect(await store.findSubscription(subscriptionId)).toEqual({ ...made, ...failing });
  expect(made).toMatchObject({ delivery: { url: "http://down/" }, notifiedCount: 0 });
});

it("unSubscribe of a foreign subscription fails, and does not move it to another node", async () => {
  const policy: Policy = { ...allowAll, allows: (_, action) => action !== "administer" };
  cluster = await TestCluster.start(2, { policy });
  const { store } = cluster.shared;
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId }));
  const first = await store.findSubscription(subscriptionId);
  await expect(cluster.run(cluster.unSubscribe(1, subscriptionId))).rejects.toMatchObject({ code: 100_504 });
  await cluster.clock.advance(3_000);
  expect(await store.findSubscription(subscriptionId)).toEqual(first);
});

it("a new subscription shows no attempts of a removed one with the same identifier", async () => {
  cluster = await TestCluster.start(1);
  const { broker } = cluster.node(0);
  await cluster.run(broker.open({ topic: "a", groupId: undefined }));
  cluster.sink.receive("http://down/", () => new Promise(() => {}));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId, url: "http://down/" }));
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.run(cluster.unSubscribe(0, subscriptionId));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId }));
  expect(await cluster.run(broker.operator.getSubscription(testCaller, subscriptionId))).toMatchObject({
    attempts: [],
  });
});

it("if a redelivery ends after its subscription was removed, a later subscription with the same identifier shows no attempt", async () => {
  cluster = await TestCluster.start(1);
  const { broker } = cluster.node(0);
  await cluster.run(broker.open({ topic: "a", groupId: undefined }));
  const url = "http://down/";
  const answer = createDeferred<AttemptOutcome>();
  cluster.sink.receive(url, () => ({ status: "failed", reason: "down" }));
  const options = { onFailure: "skip", attemptsMax: 1 } as const;
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId, url, options }));
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(1_000);
  cluster.sink.receive(url, () => answer.promise);
  const redeliver = { order: { kind: "redeliver", eventId: undefined }, isDryRun: false } as const;
  const redelivered = broker.operator.orderSubscription(testCaller, subscriptionId, redeliver);
  await cluster.clock.advance(1_000);
  expect(cluster.attempts).toHaveLength(2);
  await cluster.run(cluster.unSubscribe(0, subscriptionId));
  answer.resolve({ status: "failed", reason: "down" });
  await cluster.run(Promise.allSettled([redelivered]));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId }));
  expect(await cluster.run(broker.operator.getSubscription(testCaller, subscriptionId))).toMatchObject({
    attempts: [],
  });
});

it("subscribing again with one setting keeps the others, even when it asks the receiver for consent", async () => {
  cluster = await TestCluster.start(1);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const made = { form: "cloudevents", onFailure: "skip", attemptsMax: 5 } as const;
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId, options: made }));
  await cluster.run(cluster.subscribe(0, "a", { subscriptionId, options: { attemptsMax: 3 } }));
  const options = { form: "cloudevents", skipAfter: 3 };
  expect(cluster.sink.checked.at(-1)).toMatchObject({ options });
  expect(await cluster.shared.store.findSubscription(subscriptionId)).toMatchObject({ delivery: { options } });
});

it("refuses a shared filter, because only MQTT has shared filters", async () => {
  cluster = await TestCluster.start(1);
  await expect(cluster.run(cluster.subscribe(0, "$share/workers/a/#"))).rejects.toMatchObject({ code: 100_109 });
});

it("subscribes to a topic whose name looks like a shared filter", async () => {
  const topic = "$share/workers/a";
  cluster = await TestCluster.start(1);
  await expect(cluster.run(cluster.subscribe(0, topic))).rejects.toMatchObject({ code: 100_101 });
  await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  await cluster.run(cluster.subscribe(0, topic, { subscriptionId }));
  await cluster.run(cluster.publish(0, topic, "1"));
  expect(cluster.sink.sequencesOf(subscriptionId)).toEqual([1]);
});
