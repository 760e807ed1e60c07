import { afterEach, expect, it } from "vitest";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

/** Connects a client to a node, and disconnects it. */
async function visit(
  node: number,
  { key, expiryMs }: { readonly key: string; readonly expiryMs: number },
): Promise<void> {
  const defaults = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will: undefined } as const;
  const order = { ...defaults, key, expiryMs, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(node).broker.attach(order, new RecordingPeer()));
  attachment.detach({ expiryMs, isRegular: true });
}

const rows = () => cluster.shared.store.sessions.listSessions({ after: undefined, limit: 9 });

it("a node that kept the session time and stood still does not count again what another node has counted", async () => {
  cluster = await TestCluster.start(3);
  await visit(0, { key: "c", expiryMs: 200_000 });
  await cluster.clock.advance(5_000);
  const keeper = await cluster.findFollower();
  const { gate } = cluster.node(keeper);
  await visit(keeper, { key: "d", expiryMs: 1_000 }); // Its end is due while the node stands still.
  await cluster.clock.advance(100);
  gate.halt();
  await cluster.clock.advance(100_000);
  gate.resume();
  await cluster.clock.advance(85_000);
  expect(await rows()).toHaveLength(1);
  await cluster.clock.advance(40_000);
  expect(await rows()).toHaveLength(0);
});
