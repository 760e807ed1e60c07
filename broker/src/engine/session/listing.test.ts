import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import { TestEngine } from "../testing/test-engine.ts";

const unknown = "00000000-0000-4000-8000-0000000000ff";
const request = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will: undefined } as const;

function subscribe(attachment: Attachment, ...texts: readonly string[]): Promise<unknown> {
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  return attachment.subscribe(texts.map((text) => ({ ...options, filter: parseTopicFilter(text) })));
}

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(key: string, expiryMs: number): Promise<{ peer: RecordingPeer; attachment: Attachment }> {
  const peer = new RecordingPeer();
  const attached = engine.broker.attach({ ...request, key, expiryMs, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return { peer, attachment };
}

async function list(): Promise<readonly string[]> {
  const all = await engine.listSubscriptions();
  return all.map((one) => `${one.filter} ${one.notifyingCount} ${one.notifiedCount}`);
}

/** The time of each filter's latest notification. */
async function times(): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries((await engine.listSubscriptions()).map(({ filter, notifiedAt }) => [filter, notifiedAt]));
}

async function idOf(filter: string): Promise<string> {
  const found = (await engine.listSubscriptions()).find((one) => String(one.filter) === filter);
  return found?.id ?? "";
}

async function publish(...topics: readonly string[]): Promise<void> {
  for (const topic of topics) await engine.publish(topic, "x");
  await engine.clock.settle();
}

describe.each([
  ["a session that outlives its connection", 60_000],
  ["a clean session", 0],
])("%s", (_, expiryMs) => {
  it("is listed once per filter, with the counts of unacknowledged and acknowledged events since its SUBSCRIBE", async () => {
    await publish("a", "b");
    const { peer, attachment } = await attach("c", expiryMs);
    await subscribe(attachment, "a", "#", "$share/s/b");
    await publish("a", "b", "a");
    const [first] = await engine.listSubscriptions();
    expect(first).toMatchObject({
      filter: "a",
      delivery: { kind: "session", protocol: "MQTT", sessionId: attachment.session.id },
    });
    expect(await list()).toEqual(["a 2 0", "# 3 0", "$share/s/b 1 0"]);
    for (const { ticket } of peer.deliveries) attachment.session.acknowledge(ticket ?? 0);
    await engine.clock.advance(1_000);
    expect(await list()).toEqual(["a 0 2", "# 0 3", "$share/s/b 0 1"]);
  });

  it("is listed with the time of each filter's latest event, or of its SUBSCRIBE if there was none", async () => {
    const subscribedAt = engine.clock.now();
    const { peer, attachment } = await attach("c", expiryMs);
    await subscribe(attachment, "a", "b", "$share/s/b");
    await engine.clock.advance(5_000);
    await publish("a");
    expect(await times()).toEqual({ a: subscribedAt + 5_000, b: subscribedAt, "$share/s/b": subscribedAt });
    for (const { ticket } of peer.deliveries) attachment.session.acknowledge(ticket ?? 0);
    await engine.clock.advance(5_000);
    await publish("b");
    expect(await times()).toEqual({
      a: subscribedAt + 5_000,
      b: subscribedAt + 10_000,
      "$share/s/b": subscribedAt + 10_000,
    });
  });

  it("is listed with the counts of the whole share, whichever member acknowledged the events", async () => {
    const members = [await attach("c", expiryMs), await attach("d", expiryMs)];
    for (const { attachment } of members) await subscribe(attachment, "$share/s/b");
    await publish("b", "b", "b");
    expect(await list()).toEqual(["$share/s/b 3 0", "$share/s/b 3 0"]);
    for (const { peer, attachment } of members) {
      for (const { ticket } of peer.deliveries) attachment.session.acknowledge(ticket ?? 0);
    }
    await engine.clock.advance(1_000);
    expect(await list()).toEqual(["$share/s/b 0 3", "$share/s/b 0 3"]);
  });

  it("loses only the filter that unSubscribe removes by its identifier, and can subscribe to that filter again", async () => {
    const { peer, attachment } = await attach("c", expiryMs);
    await subscribe(attachment, "a", "b");
    await engine.broker.unSubscribe({ subscriptionId: await idOf("a") });
    expect(await list()).toEqual(["b 0 0"]);
    expect(attachment.session.filterCount).toBe(1);
    await publish("a", "b");
    expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["b"]);
    expect(peer.endedBecause).toBeUndefined();
    await subscribe(attachment, "a");
    await publish("a");
    expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["b", "a"]);
  });
});

it("a session without a connection is listed with its waiting events, and unSubscribe removes one of its filters", async () => {
  const { attachment } = await attach("c", 60_000);
  await subscribe(attachment, "a", "b");
  await publish("a");
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(100);
  await publish("a", "b");
  expect(await list()).toEqual(["a 2 0", "b 1 0"]);
  await engine.broker.unSubscribe({ subscriptionId: await idOf("a") });
  const { peer } = await attach("c", 60_000);
  const delivered = peer.deliveries.map(({ event, isRepeated }) => [event.topic, event.sequence, isRepeated]);
  expect(delivered).toEqual([
    ["a", 1, true], // It was in flight before the removal.
    ["b", 1, false],
  ]);
});

it("a session whose client reconnects while unSubscribe removes a filter continues without that filter", async () => {
  const { attachment } = await attach("c", 60_000);
  await subscribe(attachment, "a", "b");
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(100);
  const subscriptionId = await idOf("a");
  const [{ peer, attachment: next }] = await Promise.all([
    attach("c", 60_000),
    engine.broker.unSubscribe({ subscriptionId }),
  ]);
  expect(next.session.filterCount).toBe(1);
  await publish("a", "b");
  expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["b"]);
});

it.each([0, 1] as const)(
  "does not repeat events of one filter when unSubscribe removes another, QoS %i",
  async (qos) => {
    const { peer, attachment } = await attach("c", 60_000);
    const options = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await attachment.subscribe(["a", "b"].map((text) => ({ ...options, filter: parseTopicFilter(text) })));
    const subscriptionId = await idOf("b");
    await publish("a"); // The store does not have this delivery yet when unSubscribe runs.
    await engine.broker.unSubscribe({ subscriptionId });
    await publish("b", "a");
    expect(peer.deliveries.map(({ event }) => [event.topic, event.sequence])).toEqual([
      ["a", 1],
      ["a", 2],
    ]);
    attachment.detach({ expiryMs: 60_000, isRegular: true });
    const again = await attach("c", 60_000);
    expect(again.peer.sequences).toEqual(qos === 0 ? [] : [1, 2]);
  },
);

it("refuses an unknown identifier", async () => {
  await expect(engine.broker.unSubscribe({ subscriptionId: unknown })).rejects.toMatchObject({ code: 100_504 });
});

it("a node lists the sessions of all nodes, and removes a filter of a session at another node", async () => {
  const cluster = await TestCluster.start(2);
  for (const topic of ["a", "b"]) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  const peer = new RecordingPeer();
  const call = { ...request, key: "c", expiryMs: 60_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(0).broker.attach(call, peer));
  await cluster.run(subscribe(attachment, "a", "b"));
  const filters = async (): Promise<unknown> => {
    const nodes = await cluster.run(cluster.node(1).broker.listSubscriptions());
    return nodes.map(({ subscriptions }) => subscriptions.map(({ filter }) => filter));
  };
  expect(await filters()).toEqual([["a", "b"], []]);
  const nodes = await cluster.run(cluster.node(1).broker.listSubscriptions());
  const subscriptionId = nodes[0]?.subscriptions.find(({ filter }) => String(filter) === "a")?.id ?? "";
  await cluster.run(cluster.publish(0, "b", "x")); // The store does not have this delivery yet when unSubscribe runs.
  await cluster.run(cluster.node(1).broker.unSubscribe({ subscriptionId }));
  await cluster.clock.advance(1_000);
  expect(attachment.session.filterCount).toBe(1);
  expect(peer.sequences).toEqual([1]);
  expect(peer.endedBecause).toBeUndefined();
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await cluster.clock.advance(1_000);
  expect(await filters()).toEqual([[], ["b"]]);
  await cluster.stopAll();
});
