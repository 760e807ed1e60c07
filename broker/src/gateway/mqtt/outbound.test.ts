import mqttPacket, { type IPublishPacket } from "mqtt-packet";
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Delivery } from "../../engine/session/peer.ts";
import { Encodings } from "./encodings.ts";
import { outboundAliasesMax } from "./limits.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { noMqttMetrics } from "./metrics.ts";
import { Outbound } from "./outbound.ts";
import { Outbox } from "../shared/connection/outbox.ts";
import { testSettings } from "./testing/mqtt-world.ts";

async function deliverAll(topicAliasMax: number, contents: readonly (readonly [topic: string, bytes: number])[]) {
  const stream = new PassThrough({ highWaterMark: 2 ** 20 });
  const found: (readonly [string, number | undefined])[] = [];
  const parser = mqttPacket.parser({ protocolVersion: 5 });
  parser.on("packet", (packet) => {
    const { topic, properties } = packet as IPublishPacket; // nothing else is delivered
    found.push([topic, properties?.topicAlias]);
  });
  const outbound = new Outbound({
    outbox: new Outbox(stream, new UnreadBytes()),
    encodings: new Encodings(testSettings.extensionPrefix),
    version: 5,
    packetBytesMax: 200,
    topicAliasMax,
    settings: testSettings,
    metrics: noMqttMetrics,
    onEnded: () => {},
  });
  for (const [topic, bytes] of contents) {
    const event = { topic, content: new Uint8Array(bytes), extensions: [], sequence: 1, blockNumber: 1 };
    // Only the fields that Outbound reads.
    const delivery = { event, eventId: "e", qos: 0, ticket: undefined, isRepeated: false, filters: [] };
    outbound.deliver(delivery as unknown as Delivery);
  }
  await setImmediate();
  parser.parse(stream.read() as Buffer); // something was delivered
  return found;
}

it("sends an alias without its topic only after a packet with both", async () => {
  const found = await deliverAll(2, [
    ["a", 1_000], // left out
    ["a", 192], // without the event's identifier, sequence and block, and without an alias
    ["a", 1],
    ["a", 1],
    ["b", 1],
    ["c", 1],
    ["b", 1],
  ]);
  expect(found).toEqual([
    ["a", undefined],
    ["a", 1],
    ["", 1],
    ["b", 2],
    ["c", undefined],
    ["", 2],
  ]);
});

it("sends an event by alias if it fits only without its identifier, sequence, block and topic", async () => {
  const topic = "plant/1/boiler";
  const found = await deliverAll(1, [
    [topic, 1],
    [topic, 185], // 14 bytes more with the name
  ]);
  expect(found).toEqual([
    [topic, 1],
    ["", 1],
  ]);
});

it("introduces an alias with an event that fits only without its identifier, sequence and block", async () => {
  const found = await deliverAll(1, [
    ["a", 185],
    ["a", 185],
  ]);
  expect(found).toEqual([
    ["a", 1],
    ["", 1],
  ]);
});

it("bounds the aliases of a connection", async () => {
  const topics = Array.from({ length: outboundAliasesMax + 1 }, (_, index) => [`t${index}`, 0] as const);
  const found = await deliverAll(65_535, topics);
  expect(found.at(-2)).toEqual([`t${outboundAliasesMax - 1}`, outboundAliasesMax]);
  expect(found.at(-1)).toEqual([`t${outboundAliasesMax}`, undefined]);
});
