import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

async function join(peer: RecordingPeer, key: string, { qos = 1, filters = ["$share/s/a"] } = {}): Promise<Attachment> {
  const order = { groupId: undefined, protocol: "MQTT", key, isClean: true, windowMax: 1, will: undefined } as const;
  const attached = engine.broker.attach({ ...order, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const options = { qos: qos as 0 | 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  await attachment.subscribe(filters.map((text) => ({ ...options, filter: parseTopicFilter(text) })));
  await engine.clock.settle();
  return attachment;
}

it("gives a client of two shares the events of both, although its window has room for one event", async () => {
  const peer = new RecordingPeer();
  await join(peer, "both", { qos: 0, filters: ["$share/s/a", "$share/t/a"] });
  await engine.publishMany("a", 3);
  await engine.clock.settle();
  expect(peer.sequences.toSorted((left, right) => left - right)).toEqual([1, 1, 2, 2, 3, 3]);
});
