import { expect, it, onTestFinished } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

it("a client gets the earlier retained event of a topic if another node removes the newest one, and its own node follows later", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  for (const [topic, text] of [
    ["b", "earlier"],
    ["a", "only"],
    ["b", "newest"],
  ] as const) {
    await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
    const content = new TextEncoder().encode(text);
    const extensions = [["svc-retain", "true"]] as const;
    await cluster.run(publish(cluster.node(0).broker, { topic, groupId: undefined, content, extensions }));
    await cluster.clock.advance(1_000);
  }
  const { store } = cluster.shared;
  const [listRetained, findHead] = [store.listRetained.bind(store), store.findHead.bind(store)];
  const [rolledBack, followed] = [createDeferred<void>(), createDeferred<void>()];
  store.listRetained = async (...call) => {
    const places = await listRetained(...call);
    await rolledBack.promise;
    return places;
  };
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 600_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(1).broker.attach({ ...request, ...rest }, peer));
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("#"), retained: "always" }]));
  store.findHead = (...call) => followed.promise.then(() => findHead(...call));
  cluster.chain.cutBack(cluster.chain.head - 1);
  cluster.chain.sealEmpty();
  cluster.chain.sealEmpty();
  await cluster.clock.advance(2_000);
  rolledBack.resolve();
  await cluster.clock.advance(1_000);
  followed.resolve();
  await cluster.clock.advance(5_000);
  expect(peer.deliveries.map(({ event }) => new TextDecoder().decode(event.content))).toEqual(["only", "earlier"]);
});
