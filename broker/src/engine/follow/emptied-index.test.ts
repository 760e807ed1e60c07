import { describe, expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { HeldBlocks } from "../testing/held-blocks.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
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

it("nodes serve again when an emptied index is rebuilt, although a reorg has left the chain shorter", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  for (const text of ["1", "2"]) await cluster.run(cluster.publish(0, "a", text));
  await cluster.clock.advance(5_000);
  const emptied = cluster.shared.store.rollBack(defaultGroupId, undefined);
  cluster.chain.cutBack(cluster.chain.head - 1);
  await emptied;
  await cluster.clock.advance(10_000);
  const readyAt = (indexedBlock: number) => cluster.nodes.map(() => [{ ready: true, indexedBlock }]);
  expect(cluster.nodes.map(({ broker }) => broker.groupHealth())).toMatchObject(readyAt(cluster.chain.head));
  cluster.chain.cutBack(cluster.chain.head - 1);
  for (let passed = 0; passed < 3_000; passed += 50) {
    await cluster.clock.advance(50);
    const ready = cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.ready);
    expect(ready, `${passed} ms after another reorg`).toEqual([true, true]);
  }
  expect(cluster.nodes.map(({ broker }) => broker.groupHealth())).toMatchObject(readyAt(cluster.chain.head));
});

it("a node that has not noticed that the index was emptied begins no subscription and no tail: they would begin with events of the past", async () => {
  const cluster = await TestCluster.start(2, { delayMs: () => 10 });
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.run(cluster.publish(0, "a", "old"));
  await cluster.clock.advance(5_000);
  const follower = await cluster.findFollower();
  await cluster.shared.store.rollBack(defaultGroupId, undefined);
  const { broker } = cluster.node(follower);
  const tail = { groupId: undefined, filters: ["#"], after: undefined, onConnected: () => {} };
  const lastEventIds = [undefined, `@${cluster.chain.head}`, `@${cluster.chain.head}.1`];
  const beginning: readonly Promise<unknown>[] = [
    ...["#", "a"].map((topic) => cluster.subscribe(follower, topic)),
    ...lastEventIds.map((lastEventId) => broker.tail({ ...tail, lastEventId }, new RecordingPeer())),
  ];
  const outcomes = beginning.map((one) => one.catch((error: unknown) => error));
  expect(await cluster.run(Promise.all(outcomes))).toMatchObject(beginning.map(() => ({ code: 200_205 })));
  await cluster.clock.advance(10_000);
  const id = await cluster.run(cluster.subscribe(follower, "#"));
  await cluster.run(cluster.publish(0, "a", "new"));
  await cluster.clock.advance(5_000);
  expect(textsOf(cluster, id)).toEqual(["new"]);
});

it("a node that has not noticed that the index was emptied misses no topic and no event", async () => {
  const cluster = await TestCluster.start(2, { delayMs: () => 10 });
  onTestFinished(() => cluster.stopAll());
  const call = { topic: "a", groupId: undefined };
  await cluster.run(cluster.node(0).broker.open(call));
  const eventId = await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(5_000);
  await cluster.shared.store.rollBack(defaultGroupId, undefined);
  const { broker } = cluster.node(1);
  const asked: readonly Promise<unknown>[] = [
    broker.exist(call),
    broker.state(call),
    broker.open(call),
    broker.list({ groupId: undefined, pageIndex: 0, pageSize: 10 }),
    broker.getEvent({ eventId, groupId: undefined }),
    publish(broker, { ...call, content: new Uint8Array([1]), extensions: [] }),
  ];
  const outcomes = asked.map((one) => one.catch((error: unknown) => error));
  expect(await cluster.run(Promise.all(outcomes))).toMatchObject(asked.map(() => ({ code: 200_205 })));
  await cluster.clock.advance(10_000);
  expect(await cluster.run(broker.exist(call))).toBe(true);
});

describe("while an emptied index is rebuilt", () => {
  const notUp = expect.objectContaining({ code: 200_205 });

  it.each([0, 1])("node %i refuses calls, and serves again when the index is rebuilt", async (index) => {
    const { cluster, eventId, release } = await startRebuilding();
    await cluster.clock.advance(5_000);
    const { broker } = cluster.node(index);
    expect(broker.groupHealth()).toMatchObject([{ ready: false, reason: "its index is catching up with the chain" }]);
    await expect(cluster.run(broker.getEvent({ eventId, groupId: undefined }))).rejects.toEqual(notUp);
    await expect(cluster.run(cluster.publish(index, "a", "x"))).rejects.toEqual(notUp);
    await expect(cluster.run(cluster.subscribe(index, "#"))).rejects.toEqual(notUp);
    release();
    await cluster.clock.advance(5_000);
    expect(broker.groupHealth()).toMatchObject([{ ready: true }]);
    const id = await cluster.run(cluster.subscribe(index, "#"));
    await cluster.run(cluster.publish(index, "a", "new"));
    await cluster.clock.advance(5_000);
    expect(textsOf(cluster, id)).toEqual(["new"]);
  });

  it("a node starts, and its client gets an event that a later reorg puts in the place of another", async () => {
    const { cluster, release } = await startRebuilding();
    cluster.launch(2);
    await cluster.clock.advance(2_000);
    release();
    await cluster.clock.advance(5_000);
    const { broker, gate } = cluster.node(2);
    const peer = new RecordingPeer();
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
    const rest = { windowMax: 10, expiryMs: 0, onConnected: () => {} };
    const attached = await cluster.run(broker.attach({ ...request, ...rest }, peer));
    const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await cluster.run(attached.subscribe([{ ...options, filter: parseTopicFilter("a") }]));
    gate.cut("refused");
    cluster.chain.cutBack(cluster.chain.head - 1);
    await cluster.run(cluster.publish(await cluster.findFollower(), "a", "new"));
    gate.heal();
    await cluster.clock.advance(3_000);
    expect(peer.deliveries.map(({ event }) => Buffer.from(event.content).toString())).toEqual(["new"]);
  });

  it("the sweep removes sessions that expire, and does not fail", async () => {
    const logged: string[] = [];
    const logger = { ...silentLogger, warn: (message: string) => void logged.push(message) };
    const { cluster, release } = await startRebuilding(async (world) => {
      const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
      const rest = { windowMax: 10, expiryMs: 2_000, onConnected: () => {} };
      const attached = await world.run(world.node(0).broker.attach({ ...request, ...rest }, new RecordingPeer()));
      attached.detach({ expiryMs: 2_000, isRegular: true });
    }, logger);
    const { sessions } = cluster.shared.store;
    const page = { after: undefined, limit: 10 };
    expect(await sessions.listSessions(page)).toHaveLength(1);
    await cluster.clock.advance(20_000);
    expect(cluster.node(0).broker.groupHealth()).toMatchObject([{ ready: false }]);
    expect(await sessions.listSessions(page)).toEqual([]);
    expect(logged.filter((message) => message.startsWith("sessions"))).toEqual([]);
    release();
  });
});

function textsOf({ sink }: TestCluster, id: string): readonly string[] {
  const attempts = sink.attempts.filter(({ subscription }) => subscription.id === id);
  return attempts.map(({ event }) => Buffer.from(event.content).toString());
}

/** A cluster of two nodes whose index was emptied, and whose chain returns no blocks before `release` is called. */
async function startRebuilding(
  prepare: (world: TestCluster) => Promise<void> = async () => {},
  logger: Logger = silentLogger,
) {
  const blocks = new HeldBlocks();
  const cluster = await TestCluster.start(2, { toLedger: blocks.toLedger, logger });
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const eventId = await cluster.run(cluster.publish(0, "a", "old"));
  await cluster.clock.advance(5_000);
  await prepare(cluster);
  await cluster.clock.advance(100);
  const release = blocks.hold();
  await cluster.shared.store.rollBack(defaultGroupId, undefined);
  return { cluster, eventId, release };
}
