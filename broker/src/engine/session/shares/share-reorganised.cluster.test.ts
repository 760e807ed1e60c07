import { expect, it, onTestFinished } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

async function join(cluster: TestCluster, key: string, peer: RecordingPeer): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 600_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(0).broker.attach({ ...request, ...rest }, peer));
  const options = { qos: 2, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("$share/s/a") }]));
  return attachment;
}

function publishText(cluster: TestCluster, text: string) {
  const content = new TextEncoder().encode(text);
  return cluster.run(
    publish(cluster.node(0).broker, { topic: "a", groupId: undefined, content, extensions: [["svc-qos", "2"]] }),
  );
}

function textsOf({ deliveries }: RecordingPeer): readonly string[] {
  return deliveries.map(({ event }) => new TextDecoder().decode(event.content));
}

it("a member that was away during a reorg does not get the QoS 2 event that replaced its own event if another member has received the new one", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const [first, second, again] = [new RecordingPeer(), new RecordingPeer(), new RecordingPeer()];
  const leaving = await join(cluster, "first", first);
  await publishText(cluster, "old");
  await cluster.clock.advance(1_000);
  expect(textsOf(first)).toEqual(["old"]);
  leaving.detach({ expiryMs: 600_000, isRegular: true });
  await cluster.clock.advance(1_000);
  const other = await join(cluster, "second", second);
  cluster.chain.cutBack(cluster.chain.head - 1);
  await publishText(cluster, "new");
  await cluster.clock.advance(3_000);
  expect(second.deliveries.map(({ event }) => event.position)).toEqual(
    first.deliveries.map(({ event }) => event.position),
  );
  expect(textsOf(second)).toEqual(["new"]);
  other.session.receive(second.deliveries[0]?.ticket ?? 0);
  await join(cluster, "first", again);
  await cluster.clock.advance(3_000);
  expect(textsOf(again)).toEqual([]);
});
