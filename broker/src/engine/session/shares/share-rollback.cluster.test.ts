import { describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

async function join(
  cluster: TestCluster,
  node: number,
): Promise<{ readonly attachment: Attachment; readonly peer: RecordingPeer }> {
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
  const rest = { windowMax: 10, expiryMs: 600_000, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(node).broker.attach({ ...request, ...rest }, peer));
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...options, filter: parseTopicFilter("$share/s/a") }]));
  return { attachment, peer };
}

const textsOf = ({ deliveries }: RecordingPeer) =>
  deliveries.map(({ event }) => new TextDecoder().decode(event.content));

describe.each(["before", "after"])(
  "an acknowledgement of a vanished event, %s the client's node learns of the reorg,",
  (when) => {
    it.each([0, 1, 5, 20])(
      "does not acknowledge the new event at the same position (store delay: %s ms)",
      async (delayMs) => {
        const cluster = await TestCluster.start(2, { delayMs: () => delayMs });
        await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
        const follower = await cluster.findFollower();
        const other = 1 - follower;
        const first = await join(cluster, other);
        await cluster.run(cluster.publish(follower, "a", "old"));
        await cluster.clock.advance(500);
        expect(textsOf(first.peer)).toEqual(["old"]);
        const { gate } = cluster.node(other);
        const ticket = first.peer.deliveries[0]?.ticket ?? 0;
        gate.cut("refused");
        if (when === "before") first.attachment.session.acknowledge(ticket);
        cluster.chain.cutBack(cluster.chain.head - 1);
        await cluster.run(cluster.publish(follower, "a", "new"));
        await cluster.clock.advance(1_000);
        gate.heal();
        await cluster.clock.advance(3_000);
        if (when === "after") first.attachment.session.acknowledge(ticket);
        await cluster.clock.advance(1_000);
        expect(textsOf(first.peer)).toEqual(["old", "new"]);
        first.attachment.detach({ expiryMs: 600_000, isRegular: true });
        await cluster.clock.advance(1_000);
        const again = await join(cluster, other);
        await cluster.clock.advance(3_000);
        expect(textsOf(again.peer)).toEqual(["new"]);
        await cluster.stopAll();
      },
    );

    it("does not acknowledge the new event at the same position if the client's node rolls back the index", async () => {
      const cluster = await TestCluster.start(2);
      await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
      const follower = await cluster.findFollower();
      const first = await join(cluster, follower);
      await cluster.run(cluster.publish(follower, "a", "old"));
      await cluster.clock.advance(500);
      expect(textsOf(first.peer)).toEqual(["old"]);
      const ticket = first.peer.deliveries[0]?.ticket ?? 0;
      const acknowledge = (): void => first.attachment.session.acknowledge(ticket);
      const { store } = cluster.shared;
      const rollBack = store.rollBack.bind(store);
      store.rollBack = async (...call) => {
        if (when === "before") acknowledge();
        return rollBack(...call);
      };
      const findSession = store.sessions.findSession.bind(store.sessions);
      store.sessions.findSession = async (id) => {
        const found = await findSession(id);
        await new Promise<void>((resolve) => void cluster.clock.after(500, resolve));
        return found;
      };
      cluster.chain.cutBack(cluster.chain.head - 1);
      await cluster.run(cluster.publish(1 - follower, "a", "new"));
      await cluster.clock.advance(3_000);
      if (when === "after") acknowledge();
      await cluster.clock.advance(1_000);
      expect(textsOf(first.peer)).toEqual(["old", "new"]);
      first.attachment.detach({ expiryMs: 600_000, isRegular: true });
      await cluster.clock.advance(1_000);
      const again = await join(cluster, follower);
      await cluster.clock.advance(3_000);
      expect(textsOf(again.peer)).toEqual(["new"]);
      await cluster.stopAll();
    });
  },
);
