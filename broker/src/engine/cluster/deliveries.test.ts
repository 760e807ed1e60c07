import { BrokerError } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { parseSubscriptionId, type Subscription } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import { defaultEngineLimits } from "../limits.ts";
import { ownedPageMax } from "./owned-subscriptions.ts";

let cluster: TestCluster;
async function start(count: number): Promise<TestCluster> {
  cluster = await TestCluster.start(count);
  for (const name of ["a", "b"]) await cluster.run(cluster.node(0).broker.open(topic(name)));
  return cluster;
}
afterEach(() => cluster.stopAll());

const topic = (name: string) => ({ topic: name, groupId: undefined });

async function subscribeMany(count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  return ids;
}

/** Delays the next reads of rows, at most `countMax`, until `release` is called. */
function holdReads(countMax = Number.POSITIVE_INFINITY): {
  readonly count: () => number;
  readonly release: () => void;
} {
  const { store } = cluster.shared;
  const read = store.findSubscriptions.bind(store);
  const released = createDeferred<void>();
  let count = 0;
  store.findSubscriptions = async (ids) => {
    count += 1;
    if (count <= countMax) await released.promise;
    return read(ids);
  };
  return {
    count: () => count,
    release: () => {
      store.findSubscriptions = read;
      released.resolve();
    },
  };
}

function damaged(row: Subscription): Subscription {
  return { ...row, state: "damaged" };
}

async function until(isSo: () => boolean): Promise<void> {
  for (let waited = 0; !isSo() && waited < 60_000; waited += 50) await cluster.clock.advance(50);
  expect(isSo()).toBe(true);
}

const answersAfter = (delayMs: number) => (): Promise<AttemptOutcome> =>
  new Promise((resolve) => void cluster.clock.after(delayMs, () => resolve({ status: "accepted" })));

/** The nodes that attempted an event of a subscription, in order. */
const attemptsOf = (id: string): readonly string[] =>
  cluster.attempts.flatMap(({ node, notification }) =>
    notification.subscription.id === id ? [`${node.address} ${notification.event.sequence}`] : [],
  );

it("a node that stops during a take-over delivers none of the subscriptions that it takes over", async () => {
  await start(2);
  cluster.sink.receive("http://slow/", answersAfter(900));
  for (let count = 0; count < 2; count += 1) await cluster.run(cluster.subscribe(0, "b", { url: "http://slow/" }));
  await cluster.clock.advance(4_000);
  const ids = await subscribeMany(6);
  const reads = holdReads();
  await until(() => reads.count() > 0);
  const owners = await cluster.owners();
  const own = ids.filter((id) => owners.get(id) === "node-1:1");
  expect(own.length).toBeGreaterThan(0);
  await cluster.run(cluster.publish(0, "a", "1"));
  // The drain waits for its slow attempts.
  await cluster.run(cluster.publish(0, "b", "1"));
  await cluster.clock.advance(50);
  let hasStopped = false;
  const stopped = cluster
    .node(1)
    .broker.stop(10_000)
    .then(() => void (hasStopped = true));
  await cluster.clock.advance(2_000);
  expect(hasStopped).toBe(false);
  reads.release();
  await cluster.run(stopped);
  await cluster.clock.advance(5_000);
  for (const id of own) expect(attemptsOf(id)).toEqual(["node-0:1 1"]);
});

it("a node is ready again after another node has removed a subscription whose row is damaged", async () => {
  await start(2);
  const [id = ""] = await subscribeMany(1);
  const { store } = cluster.shared;
  const [find, findAll, list] = [store.findSubscription, store.findSubscriptions, store.listSubscriptions];
  store.findSubscription = async (one) => [await find.call(store, one)].flatMap((row) => (row ? damaged(row) : []))[0];
  store.findSubscriptions = async (ids) => (await findAll.call(store, ids)).map(damaged);
  store.listSubscriptions = async (page) => (await list.call(store, page)).map(damaged);
  const health = () => cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.reason ?? "ready");
  for (const { broker } of cluster.nodes) await cluster.run(broker.listSubscriptions());
  const reason = expect.stringContaining(`subscription ${id} is not delivered: its row in the store is damaged`);
  expect(health()).toEqual([reason, reason]);
  await cluster.run(cluster.unSubscribe(0, id));
  await cluster.clock.advance(defaultEngineLimits.ownedPollMs);
  expect(health()).toEqual(["ready", "ready"]);
});

it("delivers to the new url of a subscribe that failed although the store committed the url", async () => {
  await start(1);
  const subscriptionId = await cluster.run(cluster.subscribe(0, "a", { url: "http://old/" }));
  const { store } = cluster.shared;
  const update = store.updateSubscription.bind(store);
  store.updateSubscription = async (...call) => {
    await update(...call);
    store.updateSubscription = update;
    throw new BrokerError("storeUnreachable");
  };
  const again = cluster.run(cluster.subscribe(0, "a", { url: "http://new/", subscriptionId }));
  await expect(again).rejects.toMatchObject({ code: 200207 });
  await cluster.clock.advance(defaultEngineLimits.ownedPollMs);
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(1_000);
  expect(cluster.sink.attempts.map(({ subscription }) => subscription.url)).toEqual(["http://new/"]);
});

// A node may own tens of thousands of subscriptions, and clients may move many times a second.
it("when sessions move, a node does not read again which subscriptions it owns", async () => {
  await start(2);
  await cluster.clock.advance(5_000);
  const { coordinator } = cluster.shared;
  const list = coordinator.listOwned.bind(coordinator);
  let reads = 0;
  coordinator.listOwned = async (nodeId) => {
    reads += 1;
    return list(nodeId);
  };
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {} };
  const since = cluster.clock.monotonic();
  for (let moves = 0; moves < 10; moves += 1) {
    const attached = cluster.node(moves % 2).broker.attach({ ...request, ...rest }, new RecordingPeer());
    await cluster.run(attached);
    await cluster.clock.advance(2 * defaultEngineLimits.lookRestMs);
  }
  const rounds = Math.ceil((cluster.clock.monotonic() - since) / defaultEngineLimits.ownedPollMs);
  expect(reads).toBeLessThanOrEqual(2 * rounds);
});

it("stop waits for a hanging read of rows only until its deadline", async () => {
  await start(1);
  await subscribeMany(1);
  const reads = holdReads();
  await cluster.shared.coordinator.leave([...cluster.node(0).ids][0] ?? ("" as NodeId)); // Any string will do.
  await until(() => reads.count() > 0);
  await cluster.run(cluster.node(0).broker.stop(1_000));
  reads.release();
});

it("a stopping node begins no further release of subscriptions after its deadline", async () => {
  await start(1);
  const { store, coordinator } = cluster.shared;
  const [owner] = cluster.node(0).ids;
  for (let index = 0; index <= 2 * ownedPageMax; index += 1) await store.insertSubscription(rowOf(index, owner), 0);
  await cluster.clock.advance(2 * defaultEngineLimits.ownedPollMs);
  let calls = 0;
  coordinator.release = () => {
    calls += 1;
    return new Promise(() => {});
  };
  await cluster.run(cluster.node(0).broker.stop(1_000));
  expect(calls).toBe(1);
});

it("if a write of progress ends after the deadline of a stop, the stopping node releases nothing afterwards", async () => {
  await start(1);
  await subscribeMany(1);
  const { store, coordinator } = cluster.shared;
  const save = store.saveProgress.bind(store);
  const written = createDeferred<void>();
  let writes = 0;
  store.saveProgress = async (rows) => {
    writes += 1;
    await written.promise;
    return save(rows);
  };
  let releases = 0;
  coordinator.release = async () => void (releases += 1);
  await cluster.run(cluster.publish(0, "a", "1"));
  await until(() => writes > 0);
  const stopped = cluster.node(0).broker.stop(1_000);
  await cluster.clock.advance(1_000);
  written.resolve();
  await cluster.run(stopped);
  expect(releases).toBe(0);
});

it("a late read under an ended membership does not touch workers of the next membership", async () => {
  await start(1);
  const { store, coordinator } = cluster.shared;
  const { ids } = cluster.node(0);
  await cluster.run(cluster.publish(0, "a", "1"));
  cluster.sink.receive("http://receiver/", answersAfter(5_000));
  const reads = holdReads(1);
  const rows = Array.from({ length: ownedPageMax + 1 }, (_, index) => rowOf(index, [...ids][0]));
  for (const row of rows) await store.insertSubscription(row, 0);
  await until(() => reads.count() === 1);
  // Deletes the rows of the page that is being read. So the next membership finds only the last row, which the ended membership has not reached.
  const last = rows.at(-1)?.id ?? "";
  for (const { id, epoch } of rows) if (id !== last) await store.deleteSubscription({ id, epoch });
  for (const id of ids) await coordinator.leave(id);
  await until(() => attemptsOf(last).length > 0);
  reads.release();
  await cluster.clock.advance(20_000);
  expect(ids.size).toBe(2);
  expect(attemptsOf(last)).toEqual(["node-0:1 1"]);
});

const never = (): Promise<AttemptOutcome> => new Promise(() => {});

it("hands over requested subscriptions at once, and one with a hanging receiver after about a second", async () => {
  await start(1);
  const { coordinator } = cluster.shared;
  cluster.sink.receive("http://hangs/", never);
  const slow = await cluster.run(cluster.subscribe(0, "a", { url: "http://hangs/" }));
  const ids = [slow, ...(await subscribeMany(3))];
  await cluster.run(cluster.publish(0, "a", "1"));
  const { balance, handOver } = coordinator;
  let askedAt = 0;
  const given: [string, number][] = [];
  coordinator.balance = async (nodeId) => {
    const done = await balance.call(coordinator, nodeId);
    if (done.requested > 0) askedAt = cluster.clock.now();
    return done;
  };
  coordinator.handOver = async (keys) => {
    for (const { id } of keys) given.push([id, cluster.clock.now() - askedAt]);
    return handOver.call(coordinator, keys);
  };
  cluster.launch(1);
  await cluster.clock.advance(10_000);
  expect(given.map(([id]) => id)).toEqual([ids[1], slow]);
  const [quick, last] = given.map(([, afterMs]) => afterMs);
  expect(quick).toBeLessThan(200);
  expect(last).toBeGreaterThan(900);
});

it("a stopping node hands over at once, and waits about a second for a hanging receiver", async () => {
  await start(2);
  const ids = await subscribeMany(6);
  await cluster.clock.advance(5_000);
  const owners = await cluster.owners();
  const [slow = "", ...others] = ids.filter((id) => owners.get(id) === "node-1:1");
  cluster.sink.receive("http://hangs/", never);
  await cluster.run(cluster.subscribe(1, "a", { subscriptionId: slow, url: "http://hangs/" }));
  await cluster.run(cluster.publish(0, "a", "1"));
  const since = cluster.clock.now();
  let stoppedAfterMs = 0;
  const stopped = cluster.node(1).broker.stop(10_000);
  const ended = stopped.then(() => void (stoppedAfterMs = cluster.clock.now() - since));
  void cluster.publish(0, "a", "2");
  await cluster.clock.advance(500);
  for (const id of others) expect(attemptsOf(id)).toEqual(["node-1:1 1", "node-0:1 2"]);
  cluster.sink.receive("http://hangs/", () => ({ status: "accepted" }));
  await cluster.run(ended);
  expect(stoppedAfterMs).toBeLessThan(1_500);
  await cluster.clock.advance(500);
  expect(attemptsOf(slow)).toEqual(["node-1:1 1", "node-0:1 1", "node-0:1 2"]);
});

it("a stopping node hands over thousands of subscriptions with hanging receivers within 1.15 s, after their attempts end", async () => {
  await start(2);
  cluster.sink.receive("http://hangs/", never);
  const [owner] = cluster.node(1).ids;
  const delivery = { kind: "webhook", format: "RESTful", url: "http://hangs/", secret: undefined } as const;
  const rows = Array.from({ length: 6_500 }, (_, index) => ({ ...rowOf(index, owner), delivery }));
  for (const row of rows) await cluster.shared.store.insertSubscription(row, 0);
  await cluster.clock.advance(2_000);
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(2_000);
  const since = cluster.clock.now();
  const stopped = cluster.node(1).broker.stop(10_000);
  await cluster.run(stopped);
  await cluster.clock.advance(500);
  const rest = cluster.attempts.filter(({ at }) => at >= since);
  const before = cluster.attempts.filter(({ at, node }) => at < since && node.address === "node-1:1").length;
  expect(before).toBeGreaterThan(3_000);
  expect(rest.filter(({ node }) => node.address === "node-0:1").length).toBe(before);
  expect(rest.length).toBe(before);
  expect(Math.min(...rest.map(({ at }) => at - since))).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...rest.map(({ at }) => at - since))).toBeLessThan(1_150); // The first look after the attempts takes all: each further one would take 100 ms.
});

it("a stop during a hand-over does not wait for receivers a second time", async () => {
  await start(1);
  cluster.sink.receive("http://hangs/", never);
  for (let count = 0; count < 4; count += 1) await cluster.run(cluster.subscribe(0, "a", { url: "http://hangs/" }));
  await cluster.run(cluster.publish(0, "a", "1"));
  const { store } = cluster.shared;
  let isAsked = false;
  const { balance } = cluster.shared.coordinator;
  cluster.shared.coordinator.balance = async (nodeId) => {
    const done = await balance.call(cluster.shared.coordinator, nodeId);
    isAsked ||= done.requested > 0;
    return done;
  };
  cluster.launch(1);
  await until(() => isAsked);
  await cluster.clock.advance(300);
  const since = cluster.clock.now();
  await cluster.run(cluster.node(0).broker.stop(10_000));
  expect(cluster.clock.now() - since).toBeLessThan(1_200);
  await cluster.clock.advance(500);
  const owners = new Set((await store.listSubscriptions()).map(({ owner }) => owner));
  expect(owners).toEqual(cluster.node(1).ids);
});

it("a stopping node has time to leave even if a publish hangs", async () => {
  await start(2);
  const { coordinator, store } = cluster.shared;
  const leave = coordinator.leave.bind(coordinator);
  coordinator.leave = async (nodeId) => {
    await new Promise<void>((resolve) => void cluster.clock.after(500, resolve));
    return leave(nodeId);
  };
  store.findBatch = () => new Promise(() => {});
  void cluster.publish(1, "a", "1").catch(() => undefined);
  await cluster.clock.advance(100);
  const stopped = cluster
    .node(1)
    .broker.stop(4_000)
    .then(() => coordinator.listNodes());
  expect((await cluster.run(stopped)).map(({ address }) => address)).toEqual(["node-0:1"]);
});

function rowOf(index: number, owner: NodeId | undefined): Subscription {
  return {
    id: parseSubscriptionId(`00000000-0000-4000-9000-${String(index).padStart(12, "0")}`),
    filter: "a" as Subscription["filter"],
    groupId: defaultGroupId,
    delivery: { kind: "webhook", format: "RESTful", url: "http://receiver/", secret: undefined },
    state: "active",
    cursor: 0 as Subscription["cursor"],
    notifiedCount: 0,
    failedAttempts: 0,
    failedMs: 0,
    failingSince: 0,
    retryAt: 0,
    notifiedAt: 0,
    createdAt: 0,
    owner,
    epoch: 0,
  };
}

it("health warns while a node cannot read which subscriptions it owns, although it is a member", async () => {
  await start(2);
  const { store } = cluster.shared;
  const read = store.findSubscriptions.bind(store);
  store.findSubscriptions = async () => Promise.reject(new BrokerError("storeUnreachable"));
  await subscribeMany(6);
  await cluster.clock.advance(defaultEngineLimits.ownedPollMs + 10_000);
  const health = () => cluster.nodes.map(({ broker }) => broker.groupHealth()[0]);
  expect(health()).toContainEqual(
    expect.objectContaining({
      ready: true,
      warning: expect.stringMatching(/^this node takes over and hands over no subscriptions: .*\(since .*Z\)/),
    }),
  );
  store.findSubscriptions = read;
  await cluster.clock.advance(2 * defaultEngineLimits.ownedPollMs);
  for (const { warning } of health().flatMap((one) => one ?? [])) expect(warning).toBeUndefined();
});
