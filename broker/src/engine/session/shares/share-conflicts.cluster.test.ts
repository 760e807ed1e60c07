import { expect, it, onTestFinished, vi } from "vitest";
import type { QoS } from "../../../domain/session-filter.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { ShareTake } from "../../../ports/share-store.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

/** Attaches a client to a node, as a member of the share `$share/s/a`. */
async function attachMember(cluster: TestCluster, node: number, qos: QoS = 1) {
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", isClean: false, will: undefined, windowMax: 100 } as const;
  const rest = { key: `client ${node}`, expiryMs: 600_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
  const options = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("$share/s/a") }]));
  return { peer, attachment };
}

it("does not call AbortSignal.any when another node takes an event first: up to Node 22, the older signal keeps a part of each result", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const members = [await attachMember(cluster, 0), await attachMember(cluster, 1)];
  const { shares } = cluster.shared.store;
  const takeShared = shares.takeShared.bind(shares);
  let refused = 0;
  shares.takeShared = async (take: ShareTake) => {
    const outcome = await takeShared(take);
    if (outcome !== "taken") refused += 1;
    return outcome;
  };
  const combined = vi.spyOn(AbortSignal, "any");
  onTestFinished(() => combined.mockRestore());
  for (let index = 0; index < 20; index += 1) {
    const call = { topic: "a", groupId: undefined, content: new Uint8Array([index]), extensions: [] } as const;
    await cluster.run(publish(cluster.node(0).broker, call));
    await cluster.clock.advance(1_000);
  }
  expect(members.flatMap(({ peer }) => peer.sequences).toSorted((one, other) => one - other)).toHaveLength(20);
  expect(refused).toBeGreaterThan(10);
  expect(combined).not.toHaveBeenCalled();
});

it("when a member leaves, delivers its unacknowledged event only once to a member with QoS 0 at another node", async () => {
  const cluster = await TestCluster.start(2);
  onTestFinished(() => cluster.stopAll());
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const first = await attachMember(cluster, 0);
  await cluster.run(cluster.publish(0, "a", "1"));
  await cluster.clock.advance(1_000);
  const second = await attachMember(cluster, 1, 0);
  first.attachment.detach({ expiryMs: 600_000, isRegular: true });
  await cluster.clock.advance(5_000); // five checks
  expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], [1]]);
});
