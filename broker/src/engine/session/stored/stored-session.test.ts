import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { Attachment, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

/** Attaches to a session that outlasts its connection, and subscribes to the topic `a`. */
async function attach(
  key: string,
  peer: RecordingPeer,
  { qos, will }: { readonly qos: 1 | 2; readonly will?: WillRequest },
): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, windowMax: 10, will } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const how = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  await attachment.subscribe([{ filter: parseTopicFilter("a"), ...how }]);
  return attachment;
}

function willTo(topic: string): WillRequest {
  const call = { topic, groupId: undefined, content: new Uint8Array(), extensions: [], mayBeEmpty: true };
  return { delayMs: 0, call, opensTopic: true, expiresAfterMs: undefined };
}

async function publish(qos: 1 | 2): Promise<void> {
  const call = { topic: "a", groupId: undefined, content: new Uint8Array([1]) };
  engine.broker.submit({ ...call, extensions: [["svc-qos", String(qos)]] }, () => {});
  await engine.clock.settle();
}

it("delivers a QoS 2 event to a session although another session disconnected with an acknowledgement that was not stored yet", async () => {
  const leaving = new RecordingPeer();
  const attachment = await attach("leaving", leaving, { qos: 1 });
  await publish(1);
  attachment.session.acknowledge(leaving.ticketOf(1));
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(1_000);
  const peer = new RecordingPeer();
  await attach("staying", peer, { qos: 2 });
  await publish(2);
  await engine.clock.advance(1_000);
  expect(peer.sequences).toEqual([2]);
});

it("a connected session survives sweeps, and keeps acknowledgements that come after a sweep", async () => {
  const first = new RecordingPeer();
  const attachment = await attach("long", first, { qos: 1 });
  await engine.clock.advance(3_000);
  await publish(1);
  attachment.session.acknowledge(first.ticketOf(1));
  await engine.clock.advance(3_000);
  expect(first).toMatchObject({ endedBecause: undefined, sequences: [1] });
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  const second = new RecordingPeer();
  await attach("long", second, { qos: 1 });
  await engine.clock.advance(1_000);
  expect(second.sequences).toEqual([]);
});

it("publishes the will of a session once when another connection takes the session over during a rollback", async () => {
  await engine.stop();
  engine = await TestEngine.start({ confirmations: 0 });
  const will = { topic: "will", groupId: undefined };
  await engine.broker.open({ topic: "a", groupId: undefined });
  await engine.broker.open(will);
  await attach("c", new RecordingPeer(), { qos: 1, will: willTo("will") });
  await engine.clock.advance(1_000);
  const cut = engine.chain.head;
  await publish(1);
  const [begun, mayEnd] = [createDeferred<void>(), createDeferred<void>()];
  const rollBack = engine.store.rollBack.bind(engine.store);
  engine.store.rollBack = async (...call) => {
    begun.resolve();
    await mayEnd.promise;
    return rollBack(...call);
  };
  engine.chain.cutBack(cut);
  for (let blocks = 0; blocks < 2; blocks += 1) engine.chain.sealEmpty();
  await Promise.all([begun.promise, engine.clock.advance(1_000)]);
  const attached = attach("c", new RecordingPeer(), { qos: 1 });
  await engine.clock.settle();
  mayEnd.resolve();
  await Promise.all([attached, engine.clock.advance(1_000)]);
  expect((await engine.broker.state(will)).sequence).toBe(1);
});

it("asks once for the release of an event, however often its client says that it has the event before the session is written", async () => {
  const peer = new RecordingPeer();
  const attachment = await attach("c", peer, { qos: 2 });
  await publish(2);
  await engine.clock.advance(1_000);
  for (let count = 0; count < 3; count += 1) attachment.session.receive(peer.ticketOf(1));
  await engine.clock.advance(1_000);
  expect(peer.released).toEqual([peer.ticketOf(1)]);
  attachment.session.receive(peer.ticketOf(1));
  await engine.clock.advance(1_000);
  expect(peer.released).toHaveLength(2);
});

it("asks for the release of an event although its client came back while a write of the session failed", async () => {
  const earlier = await attach("c", new RecordingPeer(), { qos: 2 });
  const { sessions } = engine.store;
  const save = sessions.saveSessions.bind(sessions);
  let isFirst = true;
  sessions.saveSessions = async (...call) => {
    if (!isFirst) return save(...call);
    isFirst = false;
    earlier.detach({ expiryMs: 60_000, isRegular: true });
    await engine.clock.settle();
    throw new BrokerError("storeUnreachable");
  };
  await publish(2);
  await engine.clock.advance(10);
  const peer = new RecordingPeer();
  const attachment = await attach("c", peer, { qos: 2 });
  expect(peer.sequences).toEqual([1]);
  attachment.session.receive(peer.ticketOf(1));
  await engine.clock.advance(10_000);
  expect(peer.released).toEqual([peer.ticketOf(1)]);
});
