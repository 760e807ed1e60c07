import { expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { MemorySessions } from "../../store/memory/memory-sessions.ts";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

it.each([
  { node: 0, expiryMs: 600_000 },
  { node: 1, expiryMs: 600_000 },
  { node: 0, expiryMs: 0 },
  { node: 1, expiryMs: 0 },
])(
  "a connected session gets no event again after another node has emptied a damaged index (session at node $node, expiry after $expiryMs ms)",
  async ({ node, expiryMs }) => {
    const cluster = await TestCluster.start(2);
    onTestFinished(() => cluster.stopAll());
    await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
    const peer = new RecordingPeer();
    const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
    const rest = { windowMax: 10, expiryMs, onConnected: () => {} };
    const attachment = await cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
    const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("#") }]));
    for (let count = 0; count < 3; count += 1) {
      await cluster.run(cluster.publish(0, "a", String(count)));
      await cluster.clock.advance(500);
      attachment.session.acknowledge(peer.deliveries.at(-1)?.ticket ?? 0);
    }
    // A session that is not stored may get an event again if a reorg could still remove the event's block.
    for (let blocks = 0; blocks < reorganisationBlocksMax; blocks += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(1_000);
    for (let blocks = 0; blocks < reorganisationBlocksMax; blocks += 1) cluster.chain.sealEmpty();
    await cluster.clock.advance(5_000);
    const { store } = cluster.shared;
    (store.sessions as MemorySessions).cutBack = () => {}; // Unlike a rollback, emptying the index does not change the rows of sessions.
    await store.rollBack(defaultGroupId, undefined);
    await cluster.clock.advance(10_000);
    await cluster.run(cluster.publish(0, "a", "last"));
    await cluster.clock.advance(5_000);
    expect(peer.deliveries.map(({ event }) => new TextDecoder().decode(event.content))).toEqual([
      "0",
      "1",
      "2",
      "last",
    ]);
  },
);
