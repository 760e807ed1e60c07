import { afterEach, beforeEach, expect, it } from "vitest";
import type { Attachment, PublishOutcome } from "../broker.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";

let cluster: TestCluster;
beforeEach(async () => {
  cluster = await TestCluster.start(3);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  for (const index of [0, 1, 2]) await cluster.publish(index, "a", "warm"); // so that each node knows the topic
});
afterEach(() => cluster.stopAll());

async function attach(index: number): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, windowMax: 10 } as const;
  const rest = { will: undefined, expiryMs: 600_000, onConnected: () => {} };
  return cluster.run(cluster.node(index).broker.attach({ ...request, ...rest }, new RecordingPeer()));
}

/** A client at a node sends a publish of QoS 2 under the packet identifier 1. Returns the outcome. */
function send(index: number, { session }: Attachment, text: string): Promise<PublishOutcome> {
  const { broker, gate } = cluster.node(index);
  const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode(text), extensions: [] };
  return new Promise((resolve) => {
    gate.receive(() => {
      try {
        broker.submit({ ...call, key: "1", session: session.keys }, resolve);
      } catch (error) {
        resolve({ status: "REFUSED", error });
      }
    });
  });
}

const release = (index: number, { session }: Attachment): Promise<boolean> =>
  cluster.node(index).broker.release({ groupId: undefined, session: session.keys, key: "1" });

/** Expects that node 0 does not publish the packet that it read late: neither under its membership from before the halt, nor after it has joined again. */
async function expectFenced(first: Attachment, late: Promise<PublishOutcome>): Promise<void> {
  expect(await cluster.run(late)).toMatchObject({ status: "REFUSED", error: { code: 200_207 } });
  await cluster.clock.advance(5_000);
  expect(await cluster.run(send(0, first, "one"))).toMatchObject({ status: "TIMEOUT" });
}

/** Contents on the chain, in order, without those of the set-up. */
function published(): readonly string[] {
  return contentsOnChain(cluster).filter((text) => text !== "warm");
}

it("if a client publishes and releases a message at one node, another node that reads the same publish late does not repeat it", async () => {
  const first = await attach(0);
  cluster.node(0).gate.halt();
  const late = send(0, first, "one");
  const second = await attach(1);
  expect(await cluster.run(send(1, second, "one"))).toMatchObject({ status: "SUCCESS" });
  expect(await cluster.run(release(1, second))).toBe(true);
  cluster.node(0).gate.resume();
  await expectFenced(first, late);
  expect(published()).toEqual(["one"]);
});

it("a node that reads a publish late does not take the key from a later publish of the session", async () => {
  const first = await attach(0);
  cluster.node(0).gate.halt();
  const late = send(0, first, "one");
  const second = await attach(1);
  await cluster.run(send(1, second, "one"));
  await cluster.run(release(1, second));
  expect(await cluster.run(send(1, second, "two"))).toMatchObject({ status: "SUCCESS" });
  cluster.node(0).gate.resume();
  await expectFenced(first, late);
  const third = await attach(2);
  expect(await cluster.run(send(2, third, "two"))).toMatchObject({ status: "SUCCESS" });
  expect(published()).toEqual(["one", "two"]);
});

it("a node that reads a release late does not free the key of a later publish", async () => {
  const first = await attach(0);
  await cluster.run(send(0, first, "one"));
  const { gate } = cluster.node(0);
  gate.halt();
  const late = new Promise<boolean>((resolve, reject) => {
    gate.receive(() => void release(0, first).then(resolve, reject));
  });
  const second = await attach(1);
  await cluster.run(release(1, second));
  await cluster.run(send(1, second, "two"));
  gate.resume();
  await expect(cluster.run(late)).rejects.toMatchObject({ code: 200_300 });
  const third = await attach(2);
  await cluster.run(send(2, third, "two"));
  expect(published()).toEqual(["one", "two"]);
});

it("a client that comes back from another node may use a packet identifier again", async () => {
  const outcome = Promise.resolve({ topic: "a", eventId: "", status: "SUCCESS" } as const);
  const first = await attach(0);
  first.session.inbound.set(1, outcome);
  first.detach({ expiryMs: 600_000, isRegular: true });
  await cluster.clock.advance(1_000);
  const again = await attach(0);
  expect([...again.session.inbound.keys()]).toEqual([1]);
  expect(again.session.keys, "publishes that wait at the node belong to the new connection").toBe(first.session.keys);
  const elsewhere = await attach(1);
  await cluster.clock.advance(1_000);
  elsewhere.detach({ expiryMs: 600_000, isRegular: true });
  await cluster.clock.advance(1_000);
  const back = await attach(0);
  expect(back.session.inbound.size).toBe(0);
  expect(back.session.keys).not.toBe(first.session.keys);
});
