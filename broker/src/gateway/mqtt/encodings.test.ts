import mqttPacket, { type IPublishPacket } from "mqtt-packet";
import { expect, it } from "vitest";
import type { Delivery } from "../../engine/session/peer.ts";
import type { PublishFields } from "./codec/encode-packet.ts";
import { Encodings } from "./encodings.ts";
import { encodingOverheadBytes } from "./limits.ts";

const longTopic = "t".repeat(200); // the length field of its packet has two bytes

function toDelivery(topic: string, extra: Partial<Delivery> = {}): Delivery {
  const event = { topic, content: Buffer.from("content"), extensions: [], sequence: 1, blockNumber: 1 };
  const delivery = { event, eventId: "e", qos: 1, ticket: 1, isRepeated: false, filters: [], ...extra };
  return delivery as unknown as Delivery; // It has all the fields that Encodings reads.
}

/** Encodes events, and counts the calls of `toOrder`: one each time that an event is encoded. */
class CountingEncoder {
  count = 0;
  readonly #encodings: Encodings;

  constructor(bytesMax?: number) {
    this.#encodings = new Encodings("svc-", bytesMax);
  }

  encode(delivery: Delivery, version: 4 | 5): IPublishPacket | undefined {
    const toFields = (): PublishFields => {
      this.count += 1;
      const { event, qos, ticket = 0 } = delivery;
      return { topic: event.topic, payload: Buffer.from(event.content), qos, packetId: ticket };
    };
    const found: IPublishPacket[] = [];
    const parser = mqttPacket.parser({ protocolVersion: version });
    parser.on("packet", (packet) => found.push(packet as IPublishPacket)); // only PUBLISH is encoded
    const bytes = this.#encodings.encode(delivery, { version, toFields });
    if (bytes !== undefined) parser.parse(bytes);
    return found[0];
  }
}

it.each(["short", longTopic])(
  "encodes an event once for all clients, each with its own packet identifier: %s",
  (topic) => {
    const encoder = new CountingEncoder();
    const delivery = toDelivery(topic);
    const tickets = [1, 2, 65_535];
    const packets = tickets.map((ticket) => encoder.encode({ ...delivery, ticket }, 4));
    expect(packets.map((packet) => packet?.messageId)).toEqual(tickets);
    for (const packet of packets) expect(packet).toMatchObject({ topic, payload: Buffer.from("content"), qos: 1 });
    expect(encoder.count).toBe(1);
  },
);

it("encodes an event once for each version and QoS", () => {
  const encoder = new CountingEncoder();
  const delivery = toDelivery("t");
  for (let round = 0; round < 3; round += 1) {
    for (const version of [4, 5] as const) {
      expect(encoder.encode({ ...delivery, qos: 0, ticket: undefined }, version)?.qos).toBe(0);
      expect(encoder.encode(delivery, version)?.qos).toBe(1);
      expect(encoder.encode({ ...delivery, qos: 2 }, version)?.qos).toBe(2);
    }
  }
  expect(encoder.count).toBe(6);
});

/** Bytes of the packet of `toDelivery("t")` with QoS 1 in version 4: fixed header, topic, packet identifier, content. */
const packetBytes = 2 + 3 + 2 + 7;

it("drops all packets before they take more than the limit", () => {
  const encoder = new CountingEncoder(3 * (packetBytes + encodingOverheadBytes));
  const deliveries = Array.from({ length: 4 }, () => toDelivery("t"));
  const countOf = (which: readonly Delivery[]): number => {
    const before = encoder.count;
    for (const delivery of which) encoder.encode(delivery, 4);
    return encoder.count - before;
  };
  const firstThree = deliveries.slice(0, 3);
  expect(countOf(firstThree)).toBe(3);
  expect(countOf(firstThree)).toBe(0);
  expect(countOf(deliveries)).toBe(1); // the fourth finds no room, so the others are forgotten
  expect(countOf(deliveries.slice(3))).toBe(0);
  expect(countOf(firstThree)).toBe(3);
});

it("counts the packets of both versions of one event against the limit", () => {
  const encoder = new CountingEncoder(packetBytes + encodingOverheadBytes);
  const delivery = toDelivery("t");
  for (const version of [4, 5, 4] as const) expect(encoder.encode(delivery, version)?.topic).toBe("t");
  expect(encoder.count).toBe(3);
});

it("keeps a single packet that takes more than the limit", () => {
  const encoder = new CountingEncoder(1);
  const delivery = toDelivery("t");
  for (let round = 0; round < 2; round += 1) expect(encoder.encode(delivery, 4)?.topic).toBe("t");
  expect(encoder.count).toBe(1);
});

it("keeps a short packet in memory of its own, not in the pool of short buffers", () => {
  const fields: PublishFields = { topic: "t", payload: Buffer.from("content"), qos: 0, packetId: 0 };
  const delivery = toDelivery("t", { qos: 0, ticket: undefined });
  const bytes = new Encodings("svc-").encode(delivery, { version: 4, toFields: () => fields });
  expect(bytes?.buffer.byteLength).toBe(bytes?.length);
});

const filter = { filter: "#", qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };

it.each<[what: string, isAlike: boolean, Partial<Delivery> | [string, string]]>([
  ["a plain event", true, {}],
  ["an extension without an effect on sharing", true, ["svc-user-a", "1"]],
  ["a filter without identifier", true, { filters: [filter] } as unknown as Partial<Delivery>],
  ["a subscription identifier", false, { filters: [{ ...filter, identifier: 3 }] } as unknown as Partial<Delivery>],
  ["a repeat", false, { isRepeated: true }],
  ["a retained event", false, { isRetained: true }],
  ["an event that expires", false, ["svc-expires-at", "1"]],
  ["an event to be retained", false, ["svc-retain", "true"]],
])("shares a packet among all clients only if they get the same bytes: %s: %j", (_, isAlike, what) => {
  const delivery = toDelivery("t");
  const changed = Array.isArray(what)
    ? { ...delivery, event: { ...delivery.event, extensions: [what] } }
    : { ...delivery, ...what };
  expect(new CountingEncoder().encode(changed, 5) !== undefined).toBe(isAlike);
});
