import { setImmediate as turn } from "node:timers/promises";
import { BrokerError, encodeEvents } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { endOfBlock } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
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

/** Calls `action` before the store of all nodes is asked, and lets come of it what does. */
function before(name: "listBlocks" | "saveProgress", action: () => void): void {
  const { store } = cluster.shared;
  const call = store[name].bind(store) as (...args: readonly unknown[]) => Promise<never>; // Either of the two.
  store[name] = async (...args: readonly unknown[]) => {
    action();
    for (let turns = 0; turns < 2; turns += 1) await turn();
    return call(...args);
  };
}

/** So many callers pass, one after the other, each when its gate is open; further ones pass at once. */
class Gates {
  readonly #gates: readonly Deferred<void>[];
  #passed = 0;

  constructor(count: number) {
    this.#gates = Array.from({ length: count }, () => createDeferred<void>());
  }

  /** Opens the first `count`. */
  open(count: number): void {
    for (const gate of this.#gates.slice(0, count)) gate.resolve();
  }

  async pass(): Promise<void> {
    this.#passed += 1;
    await this.#gates[this.#passed - 1]?.promise;
  }
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

it("what is acknowledged while the store is told how far all are is not lost with what a reorganisation takes back", async () => {
  cluster = await TestCluster.start(1);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const id = parseSubscriptionId(await cluster.run(cluster.subscribe(0, "a", { url: "http://slow/" })));
  const accepted = new Gates(3);
  cluster.sink.receive("http://slow/", async () => {
    await accepted.pass();
    return { status: "accepted" };
  });
  // The first is acknowledged before the cursors are written, the others while they are.
  before("listBlocks", () => accepted.open(1));
  before("saveProgress", () => accepted.open(3));
  const kept = cluster.chain.head + 2;
  for (const text of ["1", "2", "taken back"]) publishFromOutside(text);
  await cluster.clock.advance(100);
  cluster.chain.cutBack(kept);
  for (let blocks = 0; blocks < 2; blocks += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(2_000);
  expect(textsOf(id)).toEqual(["1", "2", "taken back"]);
  expect(await cluster.shared.store.findSubscription(id)).toMatchObject({ cursor: endOfBlock(kept), notifiedCount: 2 });
});

it("a subscription that ends between two attempts to go back is as far as the second one says", async () => {
  cluster = await TestCluster.start(1);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const id = parseSubscriptionId(await cluster.run(cluster.subscribe(0, "a", { url: "http://gone/" })));
  const gone = createDeferred<void>();
  cluster.sink.receive("http://gone/", async ({ event }) => {
    if (Buffer.from(event.content).toString() !== "last") return { status: "accepted" };
    await gone.promise;
    return { status: "gone", reason: "410" };
  });
  const opened = cluster.chain.head;
  for (const text of ["1", "2", "3", "4", "last"]) publishFromOutside(text);
  await cluster.clock.advance(1_000);
  const { store } = cluster.shared;
  const rollBack = store.rollBack.bind(store);
  store.rollBack = async () => {
    store.rollBack = rollBack;
    gone.resolve();
    await turn();
    cluster.chain.cutBack(opened + 1);
    for (let blocks = 0; blocks < 6; blocks += 1) cluster.chain.sealEmpty();
    throw new BrokerError("storeUnreachable", { details: "away" });
  };
  cluster.chain.cutBack(opened + 3);
  for (let blocks = 0; blocks < 3; blocks += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(10_000);
  expect(await store.findSubscription(id)).toMatchObject({
    state: "suspended",
    cursor: endOfBlock(opened + 1),
    notifiedCount: 1,
  });
});
