import { expect, it } from "vitest";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

it("lets new sessions begin at a node that ends no sessions, once another node has ended the sessions of its former clients", async () => {
  const cluster = await TestCluster.start(2, { limits: { sessionsMax: 10 } });
  const { broker } = cluster.node(1 - (await cluster.findFollower()));
  const request = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will: undefined } as const;
  const attach = (key: string) =>
    cluster.run(broker.attach({ ...request, key, expiryMs: 600_000, onConnected: () => {} }, new RecordingPeer()));
  for (let number = 0; number < 110; number += 1) {
    (await attach(`c${number}`)).detach({ expiryMs: 1_000, isRegular: true });
  }
  await expect(attach("new")).rejects.toMatchObject({ code: 200_300 });
  await cluster.clock.advance(120_000);
  expect(await cluster.shared.store.sessions.listSessions({ after: undefined, limit: 9 })).toEqual([]);
  await attach("new");
  await cluster.stopAll();
});
