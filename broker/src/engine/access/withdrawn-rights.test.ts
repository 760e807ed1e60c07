import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Attachment, AttachRequest } from "../broker.ts";
import type { Delivery } from "../session/peer.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { allowAll, type Policy } from "./policy.ts";

let engine: TestEngine;
let denied: string | undefined;
/** Called each time an event is denied. */
let onDenied: () => void;
beforeEach(async () => {
  denied = undefined;
  onDenied = () => {};
  const mayReceive: Policy["mayReceive"] = (_, { topic }) => {
    if (topic !== denied) return true;
    onDenied();
    return false;
  };
  engine = await TestEngine.start({ policy: { ...allowAll, mayReceive } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(peer: RecordingPeer, request: Partial<AttachRequest> = {}): Promise<Attachment> {
  const attached = engine.broker.attach(
    {
      groupId: undefined,
      protocol: "MQTT",
      key: "c",
      isClean: false,
      windowMax: 1,
      will: undefined,
      expiryMs: 60_000,
      onConnected: () => {},
      ...request,
    },
    peer,
  );
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

const orderOf = (text: string, retained?: "always") => ({
  filter: parseTopicFilter(text),
  qos: 1 as const,
  isNoLocal: false,
  isRetainAsPublished: false,
  identifier: undefined,
  retained,
});
const topicsOf = ({ deliveries }: RecordingPeer): string[] => deliveries.map(({ event }) => event.topic);

it("an event that waits for room in the window is skipped if the right to its topic has ended", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  await attachment.subscribe([orderOf("#")]);
  await engine.publishMany("a", 2);
  await engine.publish("b", "b");
  expect(topicsOf(peer)).toEqual(["a"]);
  denied = "a";
  attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
  await engine.clock.settle();
  expect(topicsOf(peer)).toEqual(["a", "b"]);
});

it("a client that reconnects does not get an event again if the right to its topic has ended, and gets the later ones", async () => {
  const attachment = await attach(new RecordingPeer());
  await attachment.subscribe([orderOf("#")]);
  await engine.publish("a", "a");
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  denied = "a";
  const peer = new RecordingPeer();
  await attach(peer);
  await engine.publish("b", "b");
  expect(topicsOf(peer)).toEqual(["b"]);
});

it("a client that is always behind keeps no room for an event that it may no longer receive", async () => {
  const first = await attach(new RecordingPeer());
  await first.subscribe([orderOf("a"), orderOf("b")]);
  await engine.publish("a", "a");
  first.detach({ expiryMs: 60_000, isRegular: true });
  const peer = new RecordingPeer();
  peer.hasRoom = false;
  const second = await attach(peer);
  await engine.publishMany("b", 3);
  denied = "a";
  peer.hasRoom = true;
  second.session.wake();
  await engine.clock.settle();
  expect(topicsOf(peer)).toEqual(["b"]);
  const counts = (await engine.listSubscriptions()).map(({ filter, notifyingCount }) => [
    String(filter),
    notifyingCount,
  ]);
  expect(Object.fromEntries(counts)).toEqual({ a: 0, b: 3 });
});

it("a client that rejects an event does not get the event again once the right to its topic has ended", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  await attachment.subscribe([orderOf("#")]);
  await engine.publish("a", "a");
  await engine.publish("b", "b");
  denied = "a";
  attachment.session.reject(peer.deliveries[0]?.ticket ?? 0);
  await engine.clock.advance(60_000);
  expect(topicsOf(peer)).toEqual(["a", "b"]);
});

it("an event that is passed on without a commit does not reach a client whose right to the topic has ended", async () => {
  const passed: string[] = [];
  const peer = Object.assign(new RecordingPeer(), { pass: ({ event }: Delivery) => void passed.push(event.topic) });
  const attachment = await attach(peer);
  await attachment.subscribe([{ ...orderOf("#"), qos: 0 }]);
  denied = "a";
  for (const topic of ["a", "b"]) {
    void engine.broker.pass({ topic, groupId: undefined, content: new Uint8Array([1]), extensions: [] });
  }
  await engine.clock.settle();
  expect(passed).toEqual(["b"]);
});

it("a retained event that waits for room in the window is skipped if the right to its topic has ended", async () => {
  await engine.broker.open({ topic: "c", groupId: undefined });
  const retained = { groupId: undefined, content: new Uint8Array([1]), extensions: [["svc-retain", "true"]] as const };
  for (const topic of ["a", "b", "c"]) {
    engine.broker.submit({ ...retained, topic }, () => {});
    await engine.clock.advance(100);
  }
  const peer = new RecordingPeer();
  const attachment = await attach(peer);
  await attachment.subscribe([orderOf("#", "always")]);
  await engine.clock.settle();
  expect(topicsOf(peer)).toEqual(["a"]);
  denied = "b";
  attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
  await engine.clock.settle();
  expect(topicsOf(peer)).toEqual(["a", "c"]);
});

it("retries of a callback end when the right to its topic ends, and the next event is delivered", async () => {
  engine.sink.receive("http://receiver/", ({ event }) =>
    event.topic === "a" ? { status: "failed", reason: "down" } : { status: "accepted" },
  );
  await engine.subscribe("#");
  await engine.publish("a", "a");
  await engine.publish("b", "b");
  await engine.clock.advance(1_000);
  const tried = engine.sink.attempts.length;
  expect(engine.sink.attempts.map(({ event }) => event.topic)).not.toContain("b");
  denied = "a";
  await engine.clock.advance(600_000);
  expect(engine.sink.attempts.slice(tried).map(({ event }) => event.topic)).toEqual(["b"]);
  const [row] = await engine.listSubscriptions();
  expect(row).toMatchObject({ notifiedCount: 1 });
});

it("a retried request leaves out the events of topics that the subscriber may no longer receive, and no others", async () => {
  let isDown = true;
  engine.sink.receive("http://receiver/", () =>
    isDown ? { status: "failed", reason: "down" } : { status: "accepted" },
  );
  await engine.subscribe("#", { options: { batchEvents: 3, batchMs: 10 } });
  for (const topic of ["a", "b", "a"]) await engine.publish(topic, topic);
  const topicsOfLast = () => engine.sink.attempts.at(-1)?.batch?.map(({ event }) => event.topic);
  await engine.clock.advance(1_000);
  expect(topicsOfLast()).toEqual(["a", "b", "a"]);
  denied = "a";
  await engine.clock.advance(600_000);
  expect(topicsOfLast()).toEqual(["b"]);
  isDown = false;
  await engine.clock.advance(600_000);
  expect(engine.sink.attempts.slice(-2).map(({ batch }) => batch?.length)).toEqual([1, 1]);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 1 });
  await engine.publish("b", "b");
  await engine.clock.advance(1_000);
  expect((await engine.listSubscriptions())[0]).toMatchObject({ notifiedCount: 2 });
});

it("an event that was skipped for lack of a right is repeated to the next connection if the client has the right again", async () => {
  const first = await attach(new RecordingPeer());
  await first.subscribe([orderOf("#")]);
  await engine.publish("a", "a");
  first.detach({ expiryMs: 60_000, isRegular: true });
  const peer = new RecordingPeer();
  peer.hasRoom = false;
  const second = await attach(peer);
  [denied, onDenied] = ["a", () => (denied = undefined)];
  peer.hasRoom = true;
  second.session.wake();
  await engine.clock.settle();
  expect([denied, topicsOf(peer)]).toEqual([undefined, []]);
  second.detach({ expiryMs: 60_000, isRegular: true });
  const third = new RecordingPeer();
  await attach(third);
  expect(topicsOf(third)).toEqual(["a"]);
});
