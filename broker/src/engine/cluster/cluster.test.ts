import { BrokerError, type ErrorName, errorCatalogue } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import type { NodeId } from "../../domain/node.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { defaultEngineLimits } from "../limits.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
async function start(count: number): Promise<TestCluster> {
  cluster = await TestCluster.start(count);
  await cluster.run(cluster.node(0).broker.open(topic("a")));
  return cluster;
}
afterEach(() => cluster.stopAll());

const topic = (name: string) => ({ topic: name, groupId: undefined });
const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const { membershipMs } = defaultEngineLimits;

/** Number of subscriptions of each node. */
async function counts(): Promise<readonly number[]> {
  const owners = [...(await cluster.owners()).values()];
  return cluster.nodes.map(({ address }) => owners.filter((owner) => owner === address).length);
}

async function subscribeMany(count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) ids.push(await cluster.run(cluster.subscribe(0, "a")));
  return ids;
}

const nodesOf = (id: string): readonly string[] =>
  cluster.attempts.flatMap(({ node, notification }) => (notification.subscription.id === id ? [node.address] : []));

describe("any node serves any call", () => {
  it("a topic, an event and a subscription created at one node are found at another", async () => {
    await start(3);
    expect(await cluster.node(1).broker.exist(topic("a"))).toBe(true);
    const id = await cluster.run(cluster.subscribe(2, "a"));
    const eventId = await cluster.run(cluster.publish(1, "a", "1"));
    const event = await cluster.node(0).broker.getEvent({ eventId, groupId: undefined });
    expect(event.sequence).toBe(1);
    await cluster.clock.advance(500);
    expect(cluster.sink.sequencesOf(id)).toEqual([1]);
  });

  it("a subscribe at another node moves the subscription there, with the new url", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.settle();
    await cluster.run(cluster.subscribe(1, "a", { subscriptionId: id, url: "http://new/" }));
    await cluster.run(cluster.publish(0, "a", "2"));
    await cluster.clock.advance(500);
    expect(cluster.sink.sequencesOf(id)).toEqual([1, 2]);
    expect(nodesOf(id)[1]).toBe("node-1:1");
    expect(cluster.attempts.at(-1)?.notification.subscription.url).toBe("http://new/");
  });

  it("an unsubscribe at another node removes the subscription", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.unSubscribe(1, id));
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.advance(5_000);
    expect(cluster.attempts).toEqual([]);
    await expect(cluster.run(cluster.unSubscribe(0, id))).rejects.toEqual(refusal("subscriptionNotExist"));
  });

  it("two nodes that subscribe with the same new identifier get one subscription", async () => {
    await start(2);
    const subscriptionId = "11111111-1111-4111-8111-111111111111";
    const calls = [0, 1].map((index) => cluster.subscribe(index, "a", { subscriptionId }));
    expect(await cluster.run(Promise.all(calls))).toEqual([subscriptionId, subscriptionId]);
    expect((await cluster.shared.store.listSubscriptions()).length).toBe(1);
  });

  it("an unsubscribe at another node waits at most 1.5 s for an attempt in progress", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    cluster.sink.receive("http://receiver/", () => createDeferred<AttemptOutcome>().promise);
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.settle();
    const since = cluster.clock.now();
    await cluster.run(cluster.unSubscribe(1, id));
    expect(cluster.clock.now() - since).toBeLessThan(1_500);
  });

  it("an unsubscribe is refused as busy within about 15 s if the owner does not hand the subscription over", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    cluster.shared.coordinator.handOver = async () => {};
    const since = cluster.clock.now();
    await expect(cluster.run(cluster.unSubscribe(1, id))).rejects.toEqual(refusal("busy"));
    expect(cluster.clock.now() - since).toBeLessThan(defaultEngineLimits.claimWaitMs + 100);
  });

  it("an unsubscribe claims again while the coordinator has no connection free", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    const { coordinator } = cluster.shared;
    const claim = coordinator.claim.bind(coordinator);
    let refused = 0;
    coordinator.claim = async (...call) => {
      refused += 1;
      if (refused <= 3) throw new BrokerError("busy");
      return claim(...call);
    };
    await cluster.run(cluster.unSubscribe(1, id));
    expect(await cluster.shared.store.listSubscriptions()).toEqual([]);
  });

  it("an unsubscribe for a subscription of a halted node succeeds once that node's membership expires", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    cluster.node(0).gate.halt();
    await cluster.run(cluster.unSubscribe(1, id));
    expect(await cluster.shared.store.findSubscription(parseSubscriptionId(id))).toBeUndefined();
    cluster.node(0).gate.resume();
  });

  it("the limit of subscriptions counts those of all nodes", async () => {
    cluster = await TestCluster.start(2, { limits: { subscriptionsMax: 1 } });
    await cluster.run(cluster.node(0).broker.open(topic("a")));
    await cluster.run(cluster.subscribe(0, "a"));
    await expect(cluster.run(cluster.subscribe(1, "a"))).rejects.toEqual(refusal("busy"));
  });
});

describe("delivery by several nodes", () => {
  it("subscriptions are balanced when nodes join and leave", async () => {
    await start(2);
    await subscribeMany(12);
    await cluster.clock.advance(5_000);
    expect(await counts()).toEqual([6, 6]);
    cluster.launch(2);
    await cluster.clock.advance(5_000);
    expect(await counts()).toEqual([4, 4, 4]);
    await cluster.stop(1);
    await cluster.clock.advance(5_000);
    expect(await counts()).toEqual([6, 6]);
  });

  it("subscriptions are balanced when a node joins or leaves, without waiting for a poll", async () => {
    cluster = await TestCluster.start(1, { limits: { balanceEveryMs: 600_000 } });
    await cluster.run(cluster.node(0).broker.open(topic("a")));
    await subscribeMany(4);
    cluster.launch(1);
    await cluster.clock.advance(4_000);
    expect(await counts()).toEqual([2, 2]);
    await cluster.stop(1);
    expect(await counts()).toEqual([4]);
  });

  it("a stopping node reports at once that it can deliver no group", async () => {
    await start(2);
    const { coordinator } = cluster.shared;
    const renew = coordinator.renew.bind(coordinator);
    const reported: (readonly string[])[] = [];
    coordinator.renew = (nodeId, what) => {
      if (cluster.node(1).ids.has(nodeId)) reported.push(what.groups);
      return renew(nodeId, what);
    };
    const stopped = cluster.node(1).broker.stop(1_000);
    await cluster.clock.settle();
    expect(reported[0]).toEqual([]);
    await cluster.run(stopped);
  });

  it("a subscription that moves to another node misses and repeats nothing", async () => {
    await start(1);
    const ids = await subscribeMany(6);
    await cluster.run(cluster.publish(0, "a", "1"));
    cluster.launch(1);
    for (let count = 2; count <= 20; count += 1) {
      await cluster.run(cluster.publish(0, "a", `${count}`));
      await cluster.clock.advance(200);
    }
    await cluster.clock.advance(1_000);
    expect(await counts()).toEqual([3, 3]);
    const all = Array.from({ length: 20 }, (_, index) => index + 1);
    for (const id of ids) expect(cluster.sink.sequencesOf(id)).toEqual(all);
  });

  it("other nodes deliver a killed node's subscriptions within 10 s", async () => {
    await start(3);
    const ids = await subscribeMany(9);
    await cluster.clock.advance(3_000);
    cluster.kill(1);
    const published = cluster.publish(0, "a", "1");
    await cluster.clock.advance(10_000);
    await published;
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
    expect((await counts()).toSorted((left, right) => left - right)).toEqual([4, 5]);
  });

  it("a node that was halted for longer than its membership makes no attempt when it resumes", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    let isFailing = true;
    cluster.sink.receive("http://receiver/", () =>
      isFailing ? { status: "failed", reason: "503" } : { status: "accepted" },
    );
    await cluster.run(cluster.publish(1, "a", "1"));
    await cluster.clock.advance(100);
    const owner = nodesOf(id)[0] === "node-0:1" ? 0 : 1;
    const { gate, address } = cluster.node(owner);
    gate.halt();
    await cluster.clock.advance(3 * membershipMs);
    isFailing = false;
    await cluster.clock.advance(60_000);
    const before = nodesOf(id).length;
    expect(nodesOf(id).at(-1)).not.toBe(address);
    gate.resume();
    await cluster.clock.advance(20_000);
    expect(nodesOf(id).length).toBe(before);
    expect(cluster.nodes.map(({ broker }) => broker.health()[0]?.ready)).toEqual([true, true]);
  });

  it("a node that loses the store stops delivery before another node takes over, and is not ready", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await cluster.clock.advance(3_000);
    const { gate, broker, address } = cluster.node(1);
    gate.cut("silent");
    await cluster.clock.advance((membershipMs * 5) / 6);
    expect(broker.health()[0]).toMatchObject({ ready: false });
    await cluster.clock.advance(5_000);
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.advance(2_000);
    expect(ids.flatMap(nodesOf)).not.toContain(address);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1]));
    gate.heal();
    await cluster.clock.advance(10_000);
    expect(broker.health()[0]).toMatchObject({ ready: true });
    expect(await counts()).toEqual([2, 2]);
  });

  it.each(["does not own", "may not write"])(
    "a node stops delivering a subscription that it %s any more",
    async (how) => {
      await start(1);
      const { coordinator, store } = cluster.shared;
      let isFailing = how === "does not own";
      cluster.sink.receive("http://receiver/", () =>
        isFailing ? { status: "failed", reason: "503" } : { status: "accepted" },
      );
      const id = parseSubscriptionId(await cluster.run(cluster.subscribe(0, "a")));
      await cluster.run(cluster.publish(0, "a", "1"));
      if (how === "may not write") coordinator.listOwned = () => Promise.reject(new Error("no connection"));
      const other = "99999999-9999-4999-8999-999999999999" as NodeId; // Any UUID.
      await coordinator.join({ id: other, address: "other:1" }, 600_000);
      await coordinator.claim(id, other);
      await coordinator.handOver(await store.findSubscriptions([id]));
      await cluster.clock.advance(200);
      isFailing = false;
      await cluster.run(cluster.publish(0, "a", "2"));
      await cluster.clock.advance(20_000);
      expect(cluster.sink.sequencesOf(id)).toEqual([1]);
      expect(await store.findSubscription(id)).toMatchObject({ owner: other, notifiedCount: 0 });
    },
  );

  it("a stopping node hands over its subscriptions at once, with their acknowledged cursors", async () => {
    await start(2);
    const ids = await subscribeMany(4);
    await cluster.clock.advance(3_000);
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.settle();
    await cluster.stop(1);
    await cluster.clock.advance(1_000);
    expect(await counts()).toEqual([4]);
    await cluster.run(cluster.publish(0, "a", "2"));
    await cluster.clock.advance(500);
    expect(ids.map((id) => cluster.sink.sequencesOf(id))).toEqual(ids.map(() => [1, 2]));
  });

  it("a suspended subscription gets no event until a client subscribes again, at any node", async () => {
    await start(2);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    cluster.sink.receive("http://receiver/", () => ({ status: "gone", reason: "410" }));
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.advance(5_000);
    expect(cluster.sink.sequencesOf(id)).toEqual([1]);
    cluster.sink.receive("http://receiver/", () => ({ status: "accepted" }));
    await cluster.run(cluster.subscribe(1, "a", { subscriptionId: id }));
    await cluster.clock.advance(500);
    expect(cluster.sink.sequencesOf(id)).toEqual([1, 1]);
  });
});

describe("the listing", () => {
  it("shows every node with its subscriptions, and is the same at another node", async () => {
    await start(3);
    const id = await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.publish(1, "a", "1"));
    await cluster.clock.advance(1_000);
    const listings = await Promise.all(cluster.nodes.map(({ broker }) => broker.listSubscriptions()));
    expect(listings[0]?.map(({ address }) => address)).toEqual(["node-0:1", "node-1:1", "node-2:1"]);
    expect(listings[1]).toEqual(listings[0]);
    expect(listings[0]?.flatMap(({ subscriptions }) => subscriptions)).toMatchObject([
      { id, notifiedCount: 1, notifyingCount: 0 },
    ]);
  });

  it("counts the acknowledgements that the asked node has not written yet", async () => {
    await start(2);
    await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.publish(0, "a", "1"));
    await cluster.clock.settle();
    const [own] = await cluster.node(0).broker.listSubscriptions();
    expect(own?.subscriptions).toMatchObject([{ notifiedCount: 1, notifyingCount: 0 }]);
  });

  it("omits a killed node, and shows its subscriptions at the remaining node", async () => {
    await start(2);
    await subscribeMany(4);
    await cluster.clock.advance(3_000);
    cluster.kill(0);
    await cluster.clock.advance(10_000);
    const listing = await cluster.node(1).broker.listSubscriptions();
    expect(listing.map(({ address, subscriptions }) => [address, subscriptions.length])).toEqual([["node-1:1", 4]]);
  });

  it("counts the waiting events of another node's subscriptions from their cursors in the store", async () => {
    await start(2);
    cluster.sink.receive("http://receiver/", () => ({ status: "failed", reason: "503" }));
    await cluster.run(cluster.subscribe(0, "a"));
    await cluster.run(cluster.publish(1, "a", "1"));
    await cluster.run(cluster.publish(1, "a", "2"));
    const listings = await Promise.all(cluster.nodes.map(({ broker }) => broker.listSubscriptions()));
    for (const listing of listings)
      expect(listing.flatMap(({ subscriptions }) => subscriptions)).toMatchObject([{ notifyingCount: 2 }]);
  });
});

it("a node that takes over a subscription continues its failed time", async () => {
  cluster = await TestCluster.start(2, { limits: { giveUpAfterMs: 60_000, retryDelayMsMax: 5_000 } });
  await cluster.run(cluster.node(0).broker.open(topic("a")));
  cluster.sink.receive("http://receiver/", () => ({ status: "failed", reason: "500" }));
  const id = await cluster.run(cluster.subscribe(0, "a"));
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(45_000);
  const owner = (await cluster.owners()).get(id);
  const state = async () => (await cluster.shared.store.findSubscription(parseSubscriptionId(id)))?.state;
  expect(await state()).toBe("active");
  cluster.kill(owner === "node-0:1" ? 0 : 1);
  await cluster.clock.advance(2 * membershipMs + 25_000);
  expect(await state()).toBe("suspended");
});
