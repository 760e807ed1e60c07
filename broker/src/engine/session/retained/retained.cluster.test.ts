import { expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

it("a subscription gets its topic's retained event even if its node does not know the event's block yet", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const follower = await cluster.findFollower();
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 600_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(1 - follower).broker.attach({ ...request, ...rest }, peer));
  const { store } = cluster.shared;
  const findHead = store.findHead.bind(store);
  const head = await findHead(defaultGroupId);
  store.findHead = async () => head;
  const extensions = [["svc-retain", "true"]] as const;
  const call = { topic: "a", groupId: undefined, content: new Uint8Array([1]), extensions };
  await cluster.run(publish(cluster.node(follower).broker, call));
  store.findHead = findHead;
  const filter = { filter: parseTopicFilter("a"), qos: 1, retained: "always", identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...filter, isNoLocal: false, isRetainAsPublished: false }]));
  await cluster.clock.advance(2_000);
  expect(peer.deliveries.map(({ isRetained }) => isRetained)).toEqual([true]);
});
