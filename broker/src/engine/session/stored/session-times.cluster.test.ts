import { BrokerError } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import type { Ledger } from "../../../ports/ledger.ts";
import type { WillRequest } from "../../broker.ts";
import { contentsOnChain } from "../../testing/contents-on-chain.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

interface Visit {
  readonly key: string;
  readonly expiryMs: number;
  readonly will?: WillRequest;
}

/** Connects a client to a node, and disconnects it. Returns whether the client had a session. */
async function visit(node: number, { key, expiryMs, will }: Visit): Promise<boolean> {
  const defaults = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will } as const;
  const request = { ...defaults, key, expiryMs, onConnected: () => {} };
  const attachment = await cluster.run(cluster.node(node).broker.attach(request, new RecordingPeer()));
  attachment.detach({ expiryMs, isRegular: will === undefined });
  return attachment.isPresent;
}

const rows = () => cluster.shared.store.sessions.listSessions({ after: undefined, limit: 9 });

it("a node that kept the session time and stood still does not add the time that another node has added since", async () => {
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

it("a node that does not keep the session time ends no session and no delay of a will early", async () => {
  cluster = await TestCluster.start(3);
  await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
  const keeper = await cluster.findFollower();
  const other = (keeper + 1) % 3;
  await visit(keeper, { key: "first", expiryMs: 200_000 }); // From now on, the session time advances.
  const call = { topic: "wills", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const will = { delayMs: 5_000, call, opensTopic: false, expiresAfterMs: undefined };
  for (const offsetMs of [100, 250, 400, 550, 700, 850]) {
    await cluster.clock.advance(1_000 + offsetMs);
    const [short, willing] = [`short ${offsetMs}`, `will ${offsetMs}`];
    await visit(other, { key: short, expiryMs: 5_000 });
    await visit(other, { key: willing, expiryMs: 60_000, will });
    await cluster.clock.advance(4_850);
    expect(await visit(other, { key: short, expiryMs: 5_000 }), short).toBe(true);
    await visit(other, { key: willing, expiryMs: 60_000 });
    await cluster.clock.advance(20_000);
    expect(contentsOnChain(cluster), willing).toEqual([]);
  }
});

it.each([0, 250, 500, 750])(
  "the delay of a will does not end early if a node stops (%i ms later)",
  async (offsetMs) => {
    cluster = await TestCluster.start(3);
    await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
    const keeper = await cluster.findFollower();
    const other = (keeper + 1) % 3;
    await visit(keeper, { key: "first", expiryMs: 200_000 }); // From now on, the session time advances.
    const call = { topic: "wills", groupId: undefined, content: new TextEncoder().encode("gone"), extensions: [] };
    const will = { delayMs: 5_000, call, opensTopic: false, expiresAfterMs: undefined };
    const request = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, key: "c", will } as const;
    const attached = cluster
      .node(other)
      .broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer());
    await cluster.run(attached);
    await cluster.clock.advance(1_000 + offsetMs);
    const stoppedAt = cluster.clock.now();
    await cluster.stop(other);
    await cluster.clock.advance(stoppedAt + 4_999 - cluster.clock.now());
    expect(contentsOnChain(cluster)).toEqual([]);
    await cluster.clock.advance(5_000);
    expect(contentsOnChain(cluster)).toEqual(["gone"]);
  },
);

it("the delay of a will does not end early if the node that keeps the session time stands still meanwhile", async () => {
  cluster = await TestCluster.start(3);
  await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
  const keeper = await cluster.findFollower();
  const other = (keeper + 1) % 3;
  await visit(keeper, { key: "first", expiryMs: 200_000 }); // From now on, the session time advances.
  await cluster.clock.advance(5_000);
  const call = { topic: "wills", groupId: undefined, content: new TextEncoder().encode("gone"), extensions: [] };
  const { gate } = cluster.node(keeper);
  gate.halt();
  await cluster.clock.advance(3_500);
  const will = { delayMs: 5_000, call, opensTopic: false, expiresAfterMs: undefined };
  await visit(other, { key: "c", expiryMs: 60_000, will });
  const leftAt = cluster.clock.now();
  gate.resume();
  await cluster.clock.advance(leftAt + 4_900 - cluster.clock.now());
  expect(contentsOnChain(cluster)).toEqual([]);
  await cluster.clock.advance(10_000);
  expect(contentsOnChain(cluster)).toEqual(["gone"]);
});

/** Makes a ledger whose transactions all time out. */
function toSilentLedger(ledger: Ledger): Ledger {
  ledger.append = (_batches, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new BrokerError("transactionTimeout")));
    });
  return ledger;
}

it("the session time advances while a will waits for its transaction", async () => {
  cluster = await TestCluster.start(3, { toLedger: toSilentLedger });
  await cluster.run(cluster.node(0).broker.open({ topic: "wills", groupId: undefined }));
  const keeper = await cluster.findFollower();
  const other = (keeper + 1) % 3;
  const call = { topic: "wills", groupId: undefined, content: new Uint8Array([1]), extensions: [] };
  const will = { delayMs: 0, call, opensTopic: false, expiresAfterMs: undefined };
  await visit(other, { key: "willing", expiryMs: 600_000, will });
  await cluster.clock.advance(50_000); // The first try has timed out, and a sweep tries again.
  await visit(other, { key: "short", expiryMs: 15_000 });
  await cluster.clock.advance(14_500);
  expect(await visit(other, { key: "short", expiryMs: 15_000 })).toBe(true);
});
