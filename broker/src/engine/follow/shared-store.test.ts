import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventBatch } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const topic = { topic: "a", groupId: undefined };
let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open(topic));
});
afterEach(() => cluster.stopAll());

describe("a committed call whose read of the index fails", () => {
  const failures = [new BrokerError("busy"), new BrokerError("storeUnreachable"), new Error("unforeseen")] as const;

  it.each(failures)("answers TIMEOUT to a publish: %s", async (failure) => {
    const { store } = cluster.shared;
    store.findBatch = async () => Promise.reject(failure);
    expect([await cluster.run(cluster.publish(0, "a", "1")), await cluster.run(cluster.publish(1, "a", "2"))]).toEqual([
      "TIMEOUT",
      "TIMEOUT",
    ]);
    expect((await store.findTopic(defaultGroupId, parseTopicName("a")))?.sequence).toBe(2);
  });

  it.each(failures)("answers 200201 to a close: %s", async (failure) => {
    const { store } = cluster.shared;
    const findTopic = store.findTopic.bind(store);
    store.findTopic = async (groupId, name) => {
      const found = await findTopic(groupId, name);
      if (found?.closed === true) throw failure;
      return found;
    };
    await expect(cluster.run(cluster.node(0).broker.close(topic))).rejects.toMatchObject({ code: 200201 });
  });
});

describe("a committed publish whose batch the index lacks or has in another place, after a reorg or because strangers filled the block", () => {
  it.each<[string, (found: EventBatch) => EventBatch | undefined]>([
    ["not at all", () => undefined],
    ["in another block", (found) => ({ ...found, blockNumber: found.blockNumber + 1 })],
    ["with other sequences", (found) => ({ ...found, firstSequence: found.firstSequence + 1 })],
  ])("answers TIMEOUT: %s", async (_where, change) => {
    const { store } = cluster.shared;
    const findBatch = store.findBatch.bind(store);
    store.findBatch = async (...place) => {
      const found = await findBatch(...place);
      return found && change(found);
    };
    expect(await cluster.run(cluster.publish(0, "a", "1"))).toBe("TIMEOUT");
  });
});

it("subscriptions that start behind at the same position share one read of the store at each node", async () => {
  for (const text of ["1", "2", "3"]) await cluster.run(cluster.publish(0, "a", text));
  const { store } = cluster.shared;
  const readBatches = store.readBatches.bind(store);
  let reads = 0;
  store.readBatches = async (groupId, range) => {
    if (range.topic !== undefined) reads += 1; // The watcher reads all topics.
    await new Promise<void>((resolve) => void cluster.clock.after(20, resolve));
    return readBatches(groupId, range);
  };
  const calls = Array.from({ length: 20 }, () => cluster.subscribe(0, "a", { offset: "OFFSET_FIRST" }));
  const ids = await cluster.run(Promise.all(calls));
  await cluster.clock.advance(1_000);
  await cluster.stop(1);
  expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1, 2, 3]));
  expect(reads).toBeLessThanOrEqual(2); // One at each node.
});

it("a node reads events from the chain if the store dropped them before the node has read them", async () => {
  const { store } = cluster.shared;
  const readBatches = store.readBatches.bind(store);
  let dropped = 0;
  store.readBatches = async (groupId, range) => {
    const found = await readBatches(groupId, range);
    if (range.topic !== undefined) return found;
    dropped += (await store.dropEvents(groupId, found)).length;
    return readBatches(groupId, range);
  };
  const ids = await cluster.run(Promise.all(Array.from({ length: 8 }, () => cluster.subscribe(0, "#", {}))));
  await cluster.clock.advance(60_000); // until each node has some of the subscriptions
  for (const text of ["1", "2", "3"]) await cluster.run(cluster.publish(0, "a", text));
  await cluster.clock.advance(1_000);
  expect(dropped).toBe(3);
  expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1, 2, 3]));
});
