import { BrokerError, encodeEvents } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** The store of all nodes refuses to go back, so many times; answers how often it was told to. */
function refuseRollBacks(count: number): () => number {
  const { store } = cluster.shared;
  const rollBack = store.rollBack.bind(store);
  let calls = 0;
  store.rollBack = async (...call) => {
    calls += 1;
    if (calls > count) return rollBack(...call);
    throw new BrokerError("storeUnreachable", { details: "away" });
  };
  return () => calls;
}

/** Somebody else's transaction. */
function publishFromOutside(text: string): void {
  const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
  cluster.chain.publish([{ address: topicAddress(parseTopicName("a")), count: 1, events }]);
}

function textsOf(id: string): readonly string[] {
  const attempts = cluster.sink.attempts.filter(({ subscription }) => subscription.id === id);
  return attempts.map(({ event }) => Buffer.from(event.content).toString());
}

it("a reorganisation that the store cannot be told of at once gives nobody again what it took back", async () => {
  cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const ids: string[] = [];
  for (let index = 0; index < 4; index += 1) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  await cluster.clock.advance(3_000);
  for (const text of ["1", "2", "3"]) await cluster.run(cluster.publish(0, "a", text));
  await cluster.clock.advance(500);
  const calls = refuseRollBacks(3);
  cluster.chain.cutBack(cluster.chain.head - 2);
  for (const text of ["other", "another", "a third"]) publishFromOutside(text);
  await cluster.clock.advance(10_000);
  expect(calls()).toBe(4);
  expect(ids.map(textsOf)).toEqual(ids.map(() => ["1", "2", "3", "other", "another", "a third"]));
});
