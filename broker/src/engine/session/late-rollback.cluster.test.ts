import { BrokerError } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { Attachment } from "../broker.ts";
import { defaultEngineLimits } from "../limits.ts";
import { LeavingPeer } from "../testing/leaving-peer.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

async function connect(
  cluster: TestCluster,
  node: number,
  { expiryMs = 600_000, peer = new RecordingPeer(), windowMax = 10, isExact = false, key = "c" } = {},
): Promise<{ readonly attachment: Attachment; readonly peer: RecordingPeer }> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, will: undefined } as const;
  const rest = { windowMax, expiryMs, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
  await subscribe(cluster, attachment, isExact ? 2 : 1);
  return { attachment, peer };
}

async function subscribe(cluster: TestCluster, attachment: Attachment, qos: 1 | 2 = 1): Promise<void> {
  const options = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("a") }]));
}

/** Makes reads of sessions slow. Returns the number of reads of each session. */
function delayReads({ clock, shared: { store } }: TestCluster): ReadonlyMap<string, number> {
  const reads = new Map<string, number>();
  const findSession = store.sessions.findSession.bind(store.sessions);
  store.sessions.findSession = async (id) => {
    reads.set(id, (reads.get(id) ?? 0) + 1);
    const found = await findSession(id);
    await new Promise<void>((resolve) => void clock.after(1_000, resolve));
    return found;
  };
  return reads;
}

const textsOf = ({ deliveries }: RecordingPeer) =>
  deliveries.map(({ event }) => new TextDecoder().decode(event.content));

const places = ["a node that learns of the reorg late", "the node that rolls back the index, whose reads are slow"];
describe.each(places)("after a reorg, a client of %s", (place) => {
  it.each([
    ["lasts", 600_000],
    ["ends with its connection", 0],
  ])("whose session %s gets the events that replace removed ones, and no event again", async (_, expiryMs) => {
    const cluster = await TestCluster.start(2);
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const follower = await cluster.findFollower();
    const isLate = place.includes("late");
    const node = isLate ? 1 - follower : follower;
    const { attachment, peer } = await connect(cluster, node, { expiryMs });
    for (const text of ["1", "old", "older"]) await cluster.run(cluster.publish(follower, "a", text));
    await cluster.clock.advance(500);
    for (const { ticket } of peer.deliveries) attachment.session.acknowledge(ticket ?? 0);
    await cluster.clock.advance(500);
    if (isLate) cluster.node(node).gate.cut("refused");
    else delayReads(cluster);
    cluster.chain.cutBack(cluster.chain.head - 2);
    for (const text of ["new", "newer", "newest"]) await cluster.run(cluster.publish(1 - node, "a", text));
    await cluster.clock.advance(1_000);
    cluster.node(node).gate.heal();
    await cluster.clock.advance(3_000);
    expect(textsOf(peer)).toEqual(["1", "old", "older", "new", "newer", "newest"]);
    await cluster.stopAll();
  });
});

it.each([
  ["a shorter", ["new"]],
  ["a longer", ["new", "newer", "newest", "5", "6"]],
])("a client of a node that started after the removed events gets those of %s branch", async (_, texts) => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  for (const text of ["1", "2", "3", "4"]) await cluster.run(cluster.publish(follower, "a", text));
  cluster.launch(2);
  await cluster.clock.advance(2_000);
  const { gate, broker } = cluster.node(2);
  const { peer } = await connect(cluster, 2, { expiryMs: 0 });
  gate.cut("refused");
  cluster.chain.cutBack(cluster.chain.head - 3);
  for (const text of texts) await cluster.run(cluster.publish(follower, "a", text));
  gate.heal();
  await cluster.clock.advance(3_000);
  expect(textsOf(peer)).toEqual(texts);
  expect(broker.groupHealth()).toMatchObject([{ ready: true }]);
  await cluster.stopAll();
});

it("a client of the node that built the index gets the events after a rollback by another node", async () => {
  const away = new Set<number>();
  const toLedger = (ledger: Ledger, index: number): Ledger => {
    const view = ledger.view.bind(ledger);
    ledger.view = () => ({ ...view(), outage: away.has(index) ? { reason: "no answer", since: 0 } : undefined });
    return ledger;
  };
  const cluster = new TestCluster({ toLedger });
  cluster.chain.publish([], { names: ["a"] });
  for (let blocks = 0; blocks < 3; blocks += 1) cluster.chain.sealEmpty();
  for (const index of [0, 1]) cluster.launch(index);
  await cluster.clock.advance(2_000);
  const former = await cluster.findFollower();
  const { peer } = await connect(cluster, former, { expiryMs: 0 });
  away.add(former);
  await cluster.clock.advance(2 * defaultEngineLimits.outageToleranceMs);
  expect(await cluster.findFollower()).toBe(1 - former);
  const { gate } = cluster.node(former);
  gate.cut("refused");
  cluster.chain.cutBack(cluster.chain.head - 3);
  const texts = ["1", "2", "3", "4"];
  for (const text of texts) await cluster.run(cluster.publish(1 - former, "a", text));
  gate.heal();
  await cluster.clock.advance(3_000);
  expect(textsOf(peer)).toEqual(texts);
  await cluster.stopAll();
});

it("a client that reconnects while its node rolls back the index gets the events that replace removed ones", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  const first = await connect(cluster, follower);
  for (const text of ["1", "old"]) await cluster.run(cluster.publish(follower, "a", text));
  await cluster.clock.advance(500);
  for (const { ticket } of first.peer.deliveries) first.attachment.session.acknowledge(ticket ?? 0);
  await cluster.clock.advance(500);
  const { sessions } = cluster.shared.store;
  const saveSessions = sessions.saveSessions.bind(sessions);
  sessions.saveSessions = async (...call) => {
    await new Promise<void>((resolve) => void cluster.clock.after(1_000, resolve)); // As if the pool had no free connection.
    return saveSessions(...call);
  };
  const again = connect(cluster, follower);
  cluster.chain.cutBack(cluster.chain.head - 1);
  const second = await again;
  for (const text of ["new", "newer"]) await cluster.run(cluster.publish(1 - follower, "a", text));
  await cluster.clock.advance(3_000);
  expect(textsOf(second.peer)).toEqual(["new", "newer"]);
  await cluster.stopAll();
});

it("a client that subscribes while its node reads its session again after a rollback keeps the new filter", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  for (const text of ["1", "2", "3"]) await cluster.run(cluster.publish(follower, "a", text));
  await cluster.clock.advance(500);
  const { store } = cluster.shared;
  const findHead = store.findHead.bind(store);
  store.findHead = async (groupId) => {
    const head = await findHead(groupId);
    await new Promise<void>((resolve) => void cluster.clock.after(500, resolve));
    return head;
  };
  const connecting = connect(cluster, 1 - follower);
  await cluster.clock.advance(10);
  cluster.chain.cutBack(cluster.chain.head - 2);
  const { peer } = await connecting;
  for (const text of ["4", "5", "6"]) await cluster.run(cluster.publish(follower, "a", text));
  await cluster.clock.advance(5_000);
  expect(textsOf(peer)).toEqual(["4", "5", "6"]);
  await cluster.stopAll();
});

it("a client that repeats its SUBSCRIBE after a rollback gets the events that replace removed ones", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  for (const text of ["1", "2"]) await cluster.run(cluster.publish(follower, "a", text));
  const { attachment, peer } = await connect(cluster, follower);
  delayReads(cluster);
  const { sessions } = cluster.shared.store;
  const saveSessionFilters = sessions.saveSessionFilters.bind(sessions);
  sessions.saveSessionFilters = async (...call) => {
    await new Promise<void>((resolve) => void cluster.clock.after(2_000, resolve)); // Longer than the read of the row.
    return saveSessionFilters(...call);
  };
  cluster.chain.cutBack(cluster.chain.head - 1);
  await cluster.clock.advance(50);
  await subscribe(cluster, attachment);
  for (const text of ["3", "4"]) await cluster.run(cluster.publish(follower, "a", text));
  await cluster.clock.advance(3_000);
  expect(textsOf(peer)).toEqual(["3", "4"]);
  await cluster.stopAll();
});

it("a client whose reconnection fails during a rollback gets the events that replace removed ones", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  const leaving = new LeavingPeer({ isRegular: true });
  const first = await connect(cluster, follower, { peer: leaving });
  leaving.attachment = first.attachment;
  for (const text of ["1", "old"]) await cluster.run(cluster.publish(follower, "a", text));
  await cluster.clock.advance(500);
  for (const { ticket } of leaving.deliveries) first.attachment.session.acknowledge(ticket ?? 0);
  await cluster.clock.advance(500);
  const { sessions } = cluster.shared.store;
  const claimSession = sessions.claimSession.bind(sessions);
  sessions.claimSession = async () => {
    sessions.claimSession = claimSession;
    await new Promise<void>((resolve) => void cluster.clock.after(1_000, resolve)); // The rollback waits for the claim.
    throw new BrokerError("storeUnreachable");
  };
  const failed = expect(connect(cluster, follower)).rejects.toMatchObject({ code: 200207 });
  cluster.chain.cutBack(cluster.chain.head - 1);
  await failed;
  for (const text of ["new", "newer"]) await cluster.run(cluster.publish(1 - follower, "a", text));
  await cluster.clock.advance(3_000);
  const { peer } = await connect(cluster, follower);
  await cluster.clock.advance(1_000);
  expect(textsOf(peer)).toEqual(["new", "newer"]);
  await cluster.stopAll();
});

it("a client of QoS 2 gets the releases of removed events whose repeats still wait for room", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  const first = await connect(cluster, follower, { isExact: true });
  const call = { topic: "a", groupId: undefined, content: Buffer.from("x"), extensions: [["svc-qos", "2"]] } as const;
  for (let count = 0; count < 3; count += 1) await cluster.run(publish(cluster.node(follower).broker, call));
  await cluster.clock.advance(500);
  const tickets = first.peer.deliveries.map(({ ticket }) => ticket);
  const second = await connect(cluster, follower, { isExact: true, windowMax: 1 });
  await cluster.clock.advance(500);
  expect(second.peer.deliveries.map(({ ticket }) => ticket)).toEqual(tickets.slice(0, 1));
  cluster.chain.cutBack(cluster.chain.head - 3);
  for (let count = 0; count < 4; count += 1) cluster.chain.sealEmpty();
  await cluster.clock.advance(3_000);
  expect(second.peer.released).toEqual(tickets.slice(1));
  await cluster.stopAll();
});

it("a node reads a session once after two reorgs, unless the read after the first reorg has begun before the second", async () => {
  const cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  for (const text of ["1", "2", "3"]) await cluster.run(cluster.publish(follower, "a", text));
  const keys = Array.from({ length: 20 }, (_, index) => `c${index}`);
  for (const key of keys) await connect(cluster, follower, { key });
  await cluster.clock.advance(1_000);
  const reads = delayReads(cluster);
  for (let reorgs = 0; reorgs < 2; reorgs += 1) {
    cluster.chain.cutBack(cluster.chain.head - 1);
    cluster.chain.sealEmpty();
    await cluster.clock.advance(400);
  }
  await cluster.clock.advance(20_000);
  expect([reads.size, [...reads.values()].filter((count) => count > 1).length]).toEqual([keys.length, 4]);
  await cluster.stopAll();
});
