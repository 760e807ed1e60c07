import { BrokerError, encodeEvents } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock, toPosition } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { ReadWriteLock } from "../../lib/read-write-lock.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { ProgressWriter } from "../deliver/progress-writer.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits } from "../limits.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { Restarter } from "./restarter.ts";
import { RollBackHistory } from "../rollback-history.ts";

const emptyBlock = { opened: [], closed: [], batches: [], skippedSequences: [] };
let cluster: TestCluster;

/** Makes rollbacks of the shared store fail the given number of times. Returns a function that counts the requested rollbacks. */
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

/** Commits an event by a transaction that no node of the cluster sent. */
function publishFromOutside(text: string): void {
  const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
  cluster.chain.publish([{ address: topicAddress(parseTopicName("a")), count: 1, events }]);
}

function textsOf(id: string): readonly string[] {
  const attempts = cluster.sink.attempts.filter(({ subscription }) => subscription.id === id);
  return attempts.map(({ event }) => Buffer.from(event.content).toString());
}

describe("a cluster", () => {
  afterEach(() => cluster.stopAll());

  it("delivers no event twice if the store refuses the rollback three times", async () => {
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

  it("after a rollback, repeats only the event that was not acknowledged", async () => {
    cluster = await TestCluster.start(1);
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const id = parseSubscriptionId(await cluster.run(cluster.subscribe(0, "a", { url: "http://slow/" })));
    cluster.sink.receive("http://slow/", ({ event }) =>
      event.sequence === 2 && cluster.sink.attempts.length === 2 ? new Promise(() => {}) : { status: "accepted" },
    );
    const kept = cluster.chain.head + 2;
    for (const text of ["1", "2", "taken back"]) publishFromOutside(text);
    await cluster.clock.settle();
    expect(textsOf(id)).toEqual(["1", "2"]);
    cluster.chain.cutBack(kept);
    for (let blocks = 0; blocks < 2; blocks += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(2_000);
    expect(textsOf(id)).toEqual(["1", "2", "2"]);
    expect(await cluster.shared.store.findSubscription(id)).toMatchObject({
      cursor: toPosition(kept, 0),
      notifiedCount: 2,
    });
  });

  it("rolls the cursor back to the block of a second reorg if the first rollback failed", async () => {
    cluster = await TestCluster.start(1);
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const id = parseSubscriptionId(await cluster.run(cluster.subscribe(0, "a")));
    const opened = cluster.chain.head;
    for (const text of ["1", "2", "3", "4"]) publishFromOutside(text);
    await cluster.clock.advance(1_000);
    const { store } = cluster.shared;
    const rollBack = store.rollBack.bind(store);
    store.rollBack = async () => {
      store.rollBack = rollBack;
      cluster.chain.cutBack(opened + 1);
      for (let blocks = 0; blocks < 5; blocks += 1) cluster.chain.sealEmpty();
      throw new BrokerError("storeUnreachable", { details: "away" });
    };
    cluster.chain.cutBack(opened + 3);
    for (let blocks = 0; blocks < 2; blocks += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(10_000);
    expect(textsOf(id)).toEqual(["1", "2", "3", "4"]);
    expect(await store.findSubscription(id)).toMatchObject({ cursor: endOfBlock(opened + 1), notifiedCount: 1 });
  });
});

it("stops readers before the store rolls back, and restarts them from the store's new head", async () => {
  const log: string[] = [];
  const store = createMemoryStore();
  const blocks = [1, 2, 3].map((number) => ({ number, hash: `0x${number}` as const, ...emptyBlock }));
  await store.applyBlocks(defaultGroupId, blocks);
  const progress = new IndexProgress();
  progress.advanceTo(3);
  const { clock } = new TestEngine();
  const rollBacks = new RollBackHistory(clock);
  const restarter = new Restarter({
    groupId: defaultGroupId,
    store,
    progress,
    progressWriter: new ProgressWriter({ store, clock, logger: silentLogger, limits: defaultEngineLimits }),
    changes: new ReadWriteLock(),
    rollBacks,
    readers: [
      {
        stop: async () => void log.push(`stopped at ${(await store.findHead(defaultGroupId))?.blockNumber}`),
        restart: () => void log.push(`restarted at ${progress.blockNumber}`),
      },
    ],
  });
  const rollBack = store.rollBack.bind(store);
  store.rollBack = async () => {
    store.rollBack = rollBack;
    throw new BrokerError("storeUnreachable", { details: "away" });
  };
  await expect(restarter.rollBack({ number: 1, hash: "0x1" })).rejects.toMatchObject({ code: 200207 });
  expect({ isDue: restarter.isDue, log }).toEqual({ isDue: true, log: ["stopped at 3"] });
  await restarter.restart(); // the chain returned to its first branch
  expect({ isDue: restarter.isDue, log }).toEqual({
    isDue: false,
    log: ["stopped at 3", "stopped at 3", "restarted at 3"],
  });
  await restarter.rollBack({ number: 1, hash: "0x1" });
  expect(log.slice(3)).toEqual(["stopped at 3", "restarted at 1"]);
  expect(progress.generation).toBe(1);
  expect(rollBacks.list()).toEqual([{ at: clock.now(), fromBlock: 3, toBlock: 1, events: 0 }]);
  await store.rollBack(defaultGroupId, undefined);
  await restarter.restart();
  expect(rollBacks.list()[0]).toMatchObject({ fromBlock: 1, toBlock: -1, events: undefined });
});
