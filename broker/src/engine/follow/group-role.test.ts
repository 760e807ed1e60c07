import { encodeEvents } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { GroupLease } from "../../ports/coordinator.ts";
import { LeaseLostError } from "../../ports/store.ts";
import { defaultEngineLimits } from "../limits.ts";
import { TestCluster } from "../testing/test-cluster.ts";

/** A write of the index. */
interface Write {
  readonly lease: GroupLease | undefined;
  readonly isRefused: boolean;
}

let cluster: TestCluster;
let writes: Write[];
afterEach(() => cluster.stopAll());

const topic = { topic: "a", groupId: undefined };
const { membershipMs } = defaultEngineLimits;

/** Starts nodes with one topic, and records every write of the index that succeeds or is refused. */
async function start(count: number): Promise<void> {
  cluster = await TestCluster.start(count);
  writes = [];
  const { store } = cluster.shared;
  const applyBlocks = store.applyBlocks.bind(store);
  store.applyBlocks = async (groupId, blocks, options) => {
    const lease = options?.lease;
    try {
      await applyBlocks(groupId, blocks, options);
      writes.push({ lease, isRefused: false });
    } catch (error) {
      if (error instanceof LeaseLostError) writes.push({ lease, isRefused: true });
      throw error;
    }
  };
  await cluster.run(cluster.node(0).broker.open(topic));
}

/** The index of the node that wrote last; -1 if none did, or if that node no longer runs. */
function followerIndex(): number {
  const nodeId = writes.findLast(({ isRefused }) => !isRefused)?.lease?.nodeId;
  return [0, 1, 2].find((index) => nodeId !== undefined && cluster.find(index)?.ids.has(nodeId) === true) ?? -1;
}

function lastWriter(): NodeId {
  const nodeId = writes.findLast(({ isRefused }) => !isRefused)?.lease?.nodeId;
  if (nodeId === undefined) throw new Error("nobody wrote");
  return nodeId;
}

async function publishMany(index: number, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await cluster.run(cluster.publish(index, "a", `${done}`));
}

/** Commits an event by a transaction that no node of the cluster sent. */
function publishFromOutside(text: string): void {
  const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
  cluster.chain.publish([{ address: topicAddress(parseTopicName("a")), count: 1, events }]);
}

function indexedBlocks(): readonly (number | undefined)[] {
  return cluster.nodes.map(({ broker }) => broker.health()[0]?.indexedBlock);
}

const sequences = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Makes subscriptions and waits until they are spread over the nodes. */
async function subscribeMany(count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  await cluster.clock.advance(3_000);
  return ids;
}

describe("the follower", () => {
  it("is one node at a time, and every node reads the index that it writes", async () => {
    await start(3);
    const ids = await subscribeMany(6);
    for (const index of [0, 1, 2]) await publishMany(index, 2);
    await cluster.clock.settle();
    expect(new Set(writes.map(({ lease }) => lease?.nodeId)).size).toBe(1);
    expect(writes.every(({ isRefused }) => !isRefused)).toBe(true);
    expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head, cluster.chain.head]);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => sequences(6)));
  });

  it("is replaced when it dies, and every event is delivered once", async () => {
    await start(3);
    const ids = await subscribeMany(6);
    await publishMany(0, 2);
    await cluster.clock.advance(500);
    const dead = followerIndex();
    cluster.kill(dead);
    publishFromOutside("3");
    await cluster.clock.advance(membershipMs + 2_500);
    expect(followerIndex()).not.toBe(dead);
    await publishMany((dead + 1) % 3, 1);
    await cluster.clock.settle();
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => sequences(4)));
  });

  it("is replaced at once when it stops", async () => {
    await start(2);
    await publishMany(0, 1);
    const stopped = followerIndex();
    await cluster.stop(stopped);
    publishFromOutside("2");
    await cluster.clock.advance(100);
    expect(followerIndex()).toBe(1 - stopped);
    expect(indexedBlocks()).toEqual([cluster.chain.head]);
  });

  it("writes nothing if its node was halted until its membership expired, and then reads the index of the new follower", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await publishMany(0, 1);
    await cluster.clock.advance(500);
    const zombie = followerIndex();
    const { gate, ids: nodeIds } = cluster.node(zombie);
    gate.halt();
    publishFromOutside("2");
    await cluster.clock.advance(2 * membershipMs);
    expect(followerIndex()).toBe(1 - zombie);
    const before = writes.length;
    gate.resume();
    publishFromOutside("3");
    await cluster.clock.advance(3_000);
    const late = writes.slice(before).filter(({ lease }) => lease !== undefined && nodeIds.has(lease.nodeId));
    expect(late.filter(({ isRefused }) => !isRefused)).toEqual([]);
    expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head]);
    await publishMany(zombie, 1);
    await cluster.clock.settle();
    expect(followerIndex()).toBe(1 - zombie);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => sequences(4)));
  });

  it("has its next write refused after the coordinator ended its membership, and every event is delivered at least once", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await publishMany(0, 1);
    await cluster.clock.settle();
    const stale = followerIndex();
    const lease = writes.at(-1)?.lease;
    if (lease === undefined) throw new Error("nobody wrote");
    await cluster.shared.coordinator.leave(lease.nodeId);
    publishFromOutside("2");
    await cluster.clock.advance(100);
    expect(writes.filter(({ isRefused }) => isRefused)).toEqual([{ lease, isRefused: true }]);
    await cluster.clock.advance(10_000);
    expect(writes.filter(({ isRefused }) => isRefused)).toHaveLength(1);
    expect(followerIndex()).toBe(1 - stale);
    await publishMany(stale, 1);
    await cluster.clock.settle();
    expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head]);
    // Events that the node delivered after its membership ended are delivered again, since it could not write their acknowledgements.
    expect(ids.map((id) => [...new Set(cluster.sink.sequencesOf(id))])).toEqual(ids.map(() => sequences(3)));
  });
});

it("a follower that lost only its lease stops following when the first write is refused", async () => {
  await start(2);
  const ids = await subscribeMany(4);
  await publishMany(0, 1);
  await cluster.clock.settle();
  const first = followerIndex();
  const lease = writes.at(-1)?.lease;
  if (lease === undefined) throw new Error("nobody wrote");
  await cluster.shared.coordinator.releaseLease(lease);
  await cluster.clock.advance(100);
  for (let count = 0; count < 3; count += 1) {
    publishFromOutside("x");
    await cluster.clock.advance(5_000);
  }
  expect(writes.filter(({ isRefused }) => isRefused)).toEqual([{ lease, isRefused: true }]);
  expect(followerIndex()).toBe(1 - first);
  const roles = cluster.nodes.map(({ broker }) => broker.health()[0]?.role);
  expect(roles).toEqual(first === 0 ? ["watches", "follows"] : ["follows", "watches"]);
  expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head]);
  expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => sequences(4)));
});

it("if a follower indexed events that its successor had not read, the successor delivers each of them once", async () => {
  await start(2);
  const ids = await subscribeMany(4);
  for (const { gate } of cluster.nodes) gate.notify = () => {};
  for (let round = 1; round <= 8; round += 1) {
    publishFromOutside("indexed");
    await cluster.clock.advance(100);
    await cluster.shared.coordinator.leave(lastWriter());
    await cluster.clock.advance(6_000 + round * 130);
  }
  await cluster.clock.advance(5_000);
  expect(new Set(writes.map(({ lease }) => lease?.epoch)).size).toBeGreaterThan(3);
  expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => sequences(8)));
});

describe("a node that does not follow", () => {
  it("reads a new block at once after a hint, and without hints at the next poll", async () => {
    await start(2);
    const watcher = 1 - followerIndex();
    await cluster.clock.advance(10);
    publishFromOutside("1");
    await cluster.clock.settle();
    expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head]);
    cluster.node(watcher).gate.notify = () => {};
    publishFromOutside("2");
    await cluster.clock.settle();
    expect(cluster.node(watcher).broker.health()[0]?.indexedBlock).toBe(cluster.chain.head - 1);
    await cluster.clock.advance(defaultEngineLimits.watchPollMs);
    expect(cluster.node(watcher).broker.health()[0]?.indexedBlock).toBe(cluster.chain.head);
  });

  it("answers from the index in the store, even before its progress reaches the newest block", async () => {
    await start(2);
    await publishMany(0, 1);
    const watcher = 1 - followerIndex();
    const { broker, gate } = cluster.node(watcher);
    gate.notify = () => {};
    await cluster.clock.advance(10);
    const eventId = await cluster.run(cluster.publish(1 - watcher, "a", "2"));
    const { head } = cluster.chain;
    expect(broker.health()[0]?.indexedBlock).toBe(head - 1);
    expect(await broker.getEvent({ eventId, groupId: undefined })).toMatchObject({ sequence: 2 });
    const refusalOf = (block: number) =>
      broker.getEvent({ eventId: eventId.replace(/-\d+-\d+$/, `-9-${block}`), groupId: undefined }).then(
        () => undefined,
        ({ code }: { code: number }) => code,
      );
    expect([await refusalOf(head), await refusalOf(head + 1)]).toEqual([100303, 100304]);
    const last = await cluster.run(cluster.subscribe(watcher, "a", { offset: "OFFSET_LAST" }));
    const first = await cluster.run(cluster.subscribe(watcher, "a", { offset: "OFFSET_FIRST" }));
    await publishMany(1 - watcher, 1);
    await cluster.clock.advance(2_000);
    expect([cluster.sink.sequencesOf(last), cluster.sink.sequencesOf(first)]).toEqual([[3], [1, 2, 3]]);
  });

  it("reports an unreachable database, and misses no event afterwards", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    const watcher = 1 - followerIndex();
    const { gate, broker } = cluster.node(watcher);
    gate.cut("refused");
    publishFromOutside("1");
    await cluster.clock.advance(1_000);
    expect(broker.health()[0]).toMatchObject({ ready: false, reason: expect.stringContaining("cut off") });
    gate.heal();
    await cluster.clock.advance(3_000);
    expect(broker.health()[0]).toMatchObject({ ready: true });
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
  });
});

describe("a reorganisation", () => {
  it("rolls back every node: the events of the new branch are delivered, and the counts are right", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await publishMany(0, 3);
    await cluster.clock.advance(500);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1, 2, 3]));
    cluster.chain.cutBack(cluster.chain.head - 2);
    cluster.chain.sealEmpty();
    publishFromOutside("other");
    await cluster.clock.advance(3_000);
    await publishMany(1, 1);
    await cluster.clock.advance(500);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1, 2, 3, 2, 3]));
    const [listing] = await cluster
      .node(0)
      .broker.listSubscriptions()
      .then((all) => [all.flatMap((node) => node.subscriptions)]);
    expect(listing).toMatchObject(ids.map(() => ({ notifiedCount: 3, notifyingCount: 0 })));
    for (const { broker } of cluster.nodes) expect(broker.health()[0]?.warning).toContain("took back");
  });

  it("is noticed by a node that reads the index only after the index has grown again; new subscriptions work at both nodes", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await publishMany(0, 3);
    await cluster.clock.advance(500);
    for (const { gate } of cluster.nodes) gate.notify = () => {};
    cluster.chain.cutBack(cluster.chain.head - 2);
    for (const text of ["other", "another", "a third", "a fourth"]) publishFromOutside(text);
    await cluster.clock.advance(5_000);
    const texts = ids.map((id) => cluster.sink.attempts.filter(({ subscription }) => subscription.id === id));
    expect(texts.map((all) => all.slice(3).map(({ event }) => Buffer.from(event.content).toString()))).toEqual(
      ids.map(() => ["other", "another", "a third", "a fourth"]),
    );
    const later = [await cluster.run(cluster.subscribe(0, "a")), await cluster.run(cluster.subscribe(1, "a"))];
    publishFromOutside("a fifth");
    await cluster.clock.advance(5_000);
    expect(later.map((id) => cluster.sink.sequencesOf(id))).toEqual([[6], [6]]);
  });

  it("makes a publish answer TIMEOUT if it removes the block before the publishing node has seen it in the index", async () => {
    await start(2);
    await publishMany(0, 1);
    const watcher = 1 - followerIndex();
    cluster.node(watcher).gate.notify = () => {};
    await cluster.clock.advance(10);
    const answer = cluster.publish(watcher, "a", "gone");
    await cluster.clock.settle();
    expect(cluster.node(1 - watcher).broker.health()[0]?.indexedBlock).toBe(cluster.chain.head);
    cluster.chain.cutBack(cluster.chain.head - 1);
    for (let count = 0; count < 5; count += 1) cluster.chain.sealEmpty();
    expect(await cluster.run(answer)).toBe("TIMEOUT");
  });

  it.each([
    ["open", { topic: "b", groupId: undefined }],
    ["close", topic],
  ] as const)(
    "makes a call to %s fail with 200201 if it removes the block before any node has indexed it",
    async (what, call) => {
      await start(2);
      await cluster.clock.advance(500);
      const dead = followerIndex();
      cluster.kill(dead);
      const answer = cluster.node(1 - dead).broker[what](call);
      await cluster.clock.advance(100);
      cluster.chain.cutBack(cluster.chain.head - 1);
      for (let count = 0; count < 5; count += 1) cluster.chain.sealEmpty();
      await expect(cluster.run(answer)).rejects.toMatchObject({ code: 200201 });
    },
  );

  it("makes a publish answer TIMEOUT, not another event's id, if it removes a block that no node indexed", async () => {
    await start(2);
    await publishMany(0, 1);
    await cluster.clock.advance(500);
    const dead = followerIndex();
    cluster.kill(dead);
    const answer = cluster.publish(1 - dead, "a", "gone");
    await cluster.clock.advance(100);
    cluster.chain.cutBack(cluster.chain.head - 1);
    for (let count = 0; count < 5; count += 1) cluster.chain.sealEmpty();
    expect(await cluster.run(answer)).toBe("TIMEOUT");
  });
});

it("after a database lost confirmed writes, the index is written again, and no subscription misses an event", async () => {
  await start(2);
  const ids = await subscribeMany(4);
  await publishMany(0, 2);
  await cluster.clock.advance(500);
  const { store } = cluster.shared;
  const [, , kept] = await store.listBlocks(defaultGroupId, { atMost: 3 });
  const findHead = store.findHead.bind(store);
  await store.rollBack(defaultGroupId, kept);
  // A server that lost its newest commits has also lost the number of rollbacks.
  const lost = async (id: typeof defaultGroupId) => {
    const head = await findHead(id);
    return head && { ...head, generation: head.generation - 1 };
  };
  store.findHead = lost;
  cluster.chain.sealEmpty();
  await cluster.clock.settle();
  publishFromOutside("3");
  await cluster.clock.advance(10_000);
  publishFromOutside("4");
  await cluster.clock.advance(10_000);
  const topicNow = await store.findTopic(defaultGroupId, parseTopicName("a"));
  expect(topicNow?.sequence).toBe(4);
  expect(indexedBlocks()).toEqual([cluster.chain.head, cluster.chain.head]);
  for (const id of ids) expect([...new Set(cluster.sink.sequencesOf(id))]).toEqual(sequences(4));
});

it("an index that several nodes wrote in turn has every event of the chain", async () => {
  await start(3);
  for (let round = 0; round < 4; round += 1) {
    await publishMany(round % 3, 2);
    const index = followerIndex();
    await cluster.stop(index);
    await cluster.clock.advance(1_000);
    cluster.launch(index);
    await cluster.clock.advance(2_000);
  }
  const state = await cluster.shared.store.findTopic(defaultGroupId, parseTopicName("a"));
  expect(state?.sequence).toBe(8);
  expect(new Set(writes.map(({ lease }) => lease?.nodeId)).size).toBeGreaterThan(3);
});
