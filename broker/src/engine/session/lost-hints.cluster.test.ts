import { afterEach, beforeEach, expect, it } from "vitest";
import type { QoS } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.start(2);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
});
afterEach(() => cluster.stopAll());

async function attach(node: number, peer: RecordingPeer): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {} };
  return cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
}

async function subscribe({ subscribe: call }: Attachment, qos: QoS): Promise<void> {
  const sessionFilter = { filter: parseTopicFilter("a"), isNoLocal: false, isRetainAsPublished: false } as const;
  await cluster.run(call([{ ...sessionFilter, qos, identifier: undefined }]));
}

/** Runs a change at node 1 while node 0 is cut off, for too short a time to lose its membership. */
async function withoutHints(change: () => Promise<unknown>): Promise<void> {
  const { gate } = cluster.node(0);
  gate.cut("silent");
  await change();
  await cluster.clock.advance(100);
  gate.heal();
  await cluster.clock.advance(1_000);
}

async function publish(): Promise<void> {
  const call = { topic: "a", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  cluster.node(1).broker.submit(call, () => {});
  await cluster.clock.advance(500);
}

it.each([0, 1, 2] as const)(
  "ends the connection of a session that moved to another node while hints were lost (QoS %i)",
  async (qos) => {
    const [first, again] = [new RecordingPeer(), new RecordingPeer()];
    await subscribe(await attach(0, first), qos);
    await withoutHints(() => attach(1, again));
    expect(first.endedBecause).toBe("taken-over");
    await publish();
    expect([first.deliveries.length, again.deliveries.length]).toEqual([0, 1]);
  },
);

it("delivers nothing of a filter that another node removed while hints were lost", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(0, peer);
  await subscribe(attachment, 0);
  const { sessions } = cluster.shared.store;
  const [found] = await sessions.listSessions({ after: undefined, limit: 1 });
  const [{ id: subscriptionId } = { id: "" }] = found?.filters ?? [];
  await withoutHints(() => cluster.run(cluster.node(1).broker.unSubscribe({ subscriptionId })));
  await publish();
  expect(peer.deliveries).toEqual([]);
});
