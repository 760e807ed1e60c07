import { encodeEvents } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import { HeldBlocks } from "../testing/held-blocks.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** Makes the database lose its newest blocks and rollbacks, as a server does that fails over to an older copy. Returns the newest block that is left. */
async function loseBlocks(count: number, rollBacks: number): Promise<number> {
  const { store } = cluster.shared;
  const kept = (await store.listBlocks(defaultGroupId, { atMost: count + 1 }))[count];
  if (kept === undefined) throw new Error("the index has fewer blocks");
  await store.rollBack(defaultGroupId, kept);
  loseRollBacks(rollBacks + 1);
  return kept.number;
}

/** Hides rollbacks from the nodes, also the rollback by which a test removes blocks: a server that lost commits has lost their number too. */
function loseRollBacks(count: number): void {
  const { store } = cluster.shared;
  const findHead = store.findHead.bind(store);
  store.findHead = async (id) => {
    const head = await findHead(id);
    return head && { ...head, generation: head.generation - count };
  };
}

/** Makes the database lose all blocks but these, which have no entry. */
async function loseAllBut(left: readonly BlockRef[]): Promise<void> {
  const { store } = cluster.shared;
  await store.rollBack(defaultGroupId, undefined);
  const nothing = { opened: [], closed: [], batches: [], skippedSequences: [] };
  await store.applyBlocks(
    defaultGroupId,
    left.map((block) => ({ ...block, ...nothing })),
  );
  loseRollBacks(1);
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

it.each([0, 1, 2])(
  "no subscription misses an event if, during one outage, the database loses blocks and %i rollbacks, and the chain replaces these blocks",
  async (rollBacks) => {
    cluster = await TestCluster.start(2);
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const ids = await Promise.all([0, 1, 0, 1].map((index) => cluster.run(cluster.subscribe(index, "a"))));
    for (let count = 0; count < rollBacks; count += 1) {
      cluster.chain.sealEmpty();
      await cluster.clock.advance(1_000);
      cluster.chain.cutBack(cluster.chain.head - 1);
    }
    for (const text of ["old 1", "old 2"]) await cluster.run(cluster.publish(0, "a", text));
    await cluster.clock.advance(3_000);
    expect((await cluster.shared.store.findHead(defaultGroupId))?.generation).toBe(rollBacks);
    for (const { gate } of cluster.nodes) gate.cut("refused");
    cluster.chain.cutBack(await loseBlocks(2, rollBacks));
    for (const text of ["new 1", "new 2"]) publishFromOutside(text);
    await cluster.clock.advance(1_000);
    for (const { gate } of cluster.nodes) gate.heal();
    await cluster.clock.advance(10_000);
    const { head } = cluster.chain;
    expect(cluster.nodes.map(({ broker }) => broker.health()[0]?.indexedBlock)).toEqual([head, head]);
    for (const id of ids) expect(contentsOf(id)).toEqual(["old 1", "old 2", "new 1", "new 2"]);
  },
);

it.each([0, 1])(
  "while the index lacks thousands of blocks that the database lost, and is rolled back by %i more, no node reports their events as missing",
  async (removed) => {
    const blocks = new HeldBlocks();
    cluster = await TestCluster.start(2, { toLedger: blocks.toLedger });
    const { store } = cluster.shared;
    const [first] = await store.listBlocks(defaultGroupId, { atMost: 1 });
    if (first === undefined) throw new Error("the index is empty");
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const eventId = await cluster.run(cluster.publish(0, "a", "old"));
    for (let sealed = 0; sealed <= reorganisationBlocksMax; sealed += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(5_000);
    const release = blocks.hold();
    // The node that follows rolls back a block that the chain does not have.
    await loseAllBut([first, { number: first.number + 1, hash: "0x0" } as const].slice(0, 1 + removed));
    await cluster.clock.advance(5_000);
    expect(await store.listBlocks(defaultGroupId, { atMost: 2 })).toEqual([first]);
    expect(cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.ready)).toEqual([false, false]);
    const missing = cluster.nodes.map(({ broker }) =>
      cluster.run(broker.getEvent({ eventId, groupId: undefined })).catch((error: unknown) => error),
    );
    expect(await Promise.all(missing)).toMatchObject([{ code: 200_205 }, { code: 200_205 }]);
    release();
    await cluster.clock.advance(5_000);
    for (const { broker } of cluster.nodes)
      expect(await cluster.run(broker.getEvent({ eventId, groupId: undefined }))).toMatchObject({ eventId });
  },
);

/** Connects a client to a node, whose session ends with its connection. It acknowledges what it gets. Returns the texts that it got. */
async function listen(index: number): Promise<readonly string[]> {
  const texts: string[] = [];
  const request = { groupId: undefined, protocol: "MQTT", key: `c${index}`, isClean: true, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 0, onConnected: () => {} };
  const peer = new RecordingPeer();
  const attached = await cluster.run(cluster.node(index).broker.attach({ ...request, ...rest }, peer));
  peer.deliver = ({ event, ticket }) => {
    texts.push(Buffer.from(event.content).toString());
    queueMicrotask(() => attached.session.acknowledge(ticket ?? 0));
  };
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attached.subscribe([{ ...options, filter: parseTopicFilter("a") }]));
  return texts;
}

/** Makes the database and the chain lose more blocks than a rollback can remove. */
async function loseThousands(): Promise<void> {
  for (let sealed = 0; sealed < 3; sealed += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(1_000);
  const left = (await cluster.shared.store.listBlocks(defaultGroupId, { atMost: 10 })).toReversed();
  const last = left.at(-1);
  if (last === undefined) throw new Error("the index is empty");
  for (const blocks of [10, reorganisationBlocksMax + 1]) {
    for (let sealed = 0; sealed < blocks; sealed += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(5_000);
  }
  for (const { gate } of cluster.nodes) gate.cut("refused");
  await loseAllBut(left);
  cluster.chain.cutBack(last.number);
  await cluster.clock.advance(1_000);
  for (const { gate } of cluster.nodes) gate.heal();
  await cluster.clock.advance(10_000);
}

it("nodes serve again after the database and the chain have both lost thousands of blocks, although the chain stays shorter, even after a reorg", async () => {
  cluster = await TestCluster.start(2);
  await loseThousands();
  for (const added of [1, 0, 0]) {
    for (const { broker } of cluster.nodes) {
      expect(broker.groupHealth()).toMatchObject([{ ready: true, indexedBlock: cluster.chain.head }]);
      expect(await cluster.run(broker.exist({ topic: "a", groupId: undefined }))).toBe(false);
    }
    for (let sealed = 0; sealed < added; sealed += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(3_000);
    cluster.chain.cutBack(cluster.chain.head - 1);
    await cluster.clock.advance(3_000);
  }
});

it("a client connected before the database and the chain lost thousands of blocks gets each later event, even those that a reorg puts in place of others", async () => {
  cluster = await TestCluster.start(2);
  const all = [await listen(0), await listen(1)];
  await loseThousands();
  cluster.chain.cutBack(cluster.chain.head - 2);
  cluster.chain.publish([], { names: ["a"] });
  for (const text of ["1", "2", "old", "older"]) {
    publishFromOutside(text);
    await cluster.clock.advance(1_000); // until each node has seen the block
  }
  cluster.chain.cutBack(cluster.chain.head - 2);
  for (const text of ["new", "newer", "newest"]) publishFromOutside(text);
  await cluster.clock.advance(3_000);
  expect(all).toEqual(all.map(() => ["1", "2", "old", "older", "new", "newer", "newest"]));
  expect(cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.ready)).toEqual([true, true]);
});
