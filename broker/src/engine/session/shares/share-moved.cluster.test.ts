import { expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

async function attach(cluster: TestCluster, node: number, peer: RecordingPeer): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 600_000, onConnected: () => {} };
  return cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
}

it("resends a share's QoS 2 event to a client that moves to another node, even if that node has not seen the event's block yet", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  const [before, after] = [new RecordingPeer(), new RecordingPeer()];
  const first = await attach(cluster, follower, before);
  const filter = parseTopicFilter("$share/s/a");
  const options = { qos: 2, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(first.subscribe([{ ...options, filter }]));
  const { store } = cluster.shared;
  const findHead = store.findHead.bind(store);
  const head = await findHead(defaultGroupId);
  store.findHead = async () => head; // The other node sees no newer block.
  const call = {
    topic: "a",
    groupId: undefined,
    content: new Uint8Array([1]),
    extensions: [["svc-qos", "2"]],
  } as const;
  await cluster.run(publish(cluster.node(follower).broker, call));
  await cluster.clock.advance(300);
  expect(before.sequences).toEqual([1]);
  await attach(cluster, 1 - follower, after);
  store.findHead = findHead;
  await cluster.clock.advance(1_000);
  expect(after.sequences).toEqual([1]);
});
