import fc from "fast-check";
import mqttPacket from "mqtt-packet";
import { describe, expect, it } from "vitest";
import { anyCharacter } from "../../../lib/testing/any-character.ts";
import { decodePacket } from "./decode-packet.ts";
import { encodeAcknowledgement, encodeConnack, encodePublish, encodeSuback, encodeUnsuback } from "./encode-packet.ts";
import { type Frame, Framer } from "./framer.ts";
import type { ClientPacket, ProtocolVersion, QoS } from "./packet.ts";
import { PacketError } from "./packet-error.ts";

/** Text that MQTT can carry: well-formed, without U+0000. */
const text = fc.string({ unit: anyCharacter, maxLength: 20 }).filter((value) => !value.includes("\0"));
const topic = text.filter((value) => value !== "" && !/[+#]/.test(value));
const binary = fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes));
const version = fc.constantFrom<ProtocolVersion>(4, 5);
const qos = fc.constantFrom<QoS>(0, 1, 2);
const packetId = fc.integer({ min: 1, max: 65_535 });
const pairs = fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 5 });
const uint32 = fc.nat(2 ** 32 - 1);

const publishProperties = fc.record(
  {
    payloadFormatIndicator: fc.constantFrom(0, 1),
    messageExpiryInterval: uint32,
    contentType: text,
    responseTopic: text,
    correlationData: binary,
    topicAlias: packetId,
    userProperties: pairs,
  },
  { requiredKeys: [] },
);

function decodeAll(bytes: Buffer, level: ProtocolVersion): ClientPacket[] {
  const packets: ClientPacket[] = [];
  new Framer(2 ** 20).push(bytes, (frame: Frame) => packets.push(decodePacket(frame, level)) > 0);
  return packets;
}

/** What another implementation reads from the bytes. */
function readByOracle(bytes: Buffer, level: ProtocolVersion): mqttPacket.Packet[] {
  const packets: mqttPacket.Packet[] = [];
  const parser = mqttPacket.parser({ protocolVersion: level });
  parser.on("packet", (packet) => packets.push(packet));
  parser.on("error", (error: Error) => {
    throw error;
  });
  parser.parse(bytes);
  return packets;
}

describe("another implementation reads what we encode", () => {
  it("topic, payload, flags and packet identifier of a PUBLISH", () => {
    const fields = fc.record({ topic, payload: binary, qos, packetId, isRetained: fc.boolean() });
    fc.assert(
      fc.property(fields, publishProperties, version, (publish, properties, level) => {
        const [read] = readByOracle(encodePublish({ ...publish, properties }, level), level);
        expect(read).toMatchObject({
          cmd: "publish",
          topic: publish.topic,
          payload: publish.payload,
          qos: publish.qos,
          retain: publish.isRetained,
          ...(publish.qos > 0 && { messageId: publish.packetId }),
        });
      }),
    );
  });

  it("CONNACK, SUBACK, UNSUBACK, PUBACK and PUBREL", () => {
    const properties = fc.record({ reasonString: text, userProperties: pairs }, { requiredKeys: [] });
    fc.assert(
      fc.property(packetId, properties, version, (id, reasons, level) => {
        const bytes = Buffer.concat([
          encodeConnack(
            { isSessionPresent: true, reasonCode: 0, properties: { ...reasons, receiveMaximum: 7 } },
            level,
          ),
          encodeSuback({ packetId: id, reasonCodes: [0, 1, 2, 0x80], properties: reasons }, level),
          encodeUnsuback({ packetId: id, reasonCodes: [0, 0x11], properties: reasons }, level),
          encodeAcknowledgement("puback", { packetId: id, reasonCode: 0x10, properties: reasons }, level),
          encodeAcknowledgement("pubrel", { packetId: id }, level),
        ]);
        const read = readByOracle(bytes, level);
        expect(read.map(({ cmd }) => cmd)).toEqual(["connack", "suback", "unsuback", "puback", "pubrel"]);
        expect(read[0]).toMatchObject({
          sessionPresent: true,
          ...(level === 5 && { properties: { receiveMaximum: 7 } }),
        });
        expect(read[1]).toMatchObject({ messageId: id, granted: [0, 1, 2, 0x80] });
        if (level === 5) expect(read[3]).toMatchObject({ messageId: id, reasonCode: 0x10 });
      }),
    );
  });
});

describe("our decoder", () => {
  it("decodes every PUBLISH that we encode, even if its bytes arrive in two pieces, cut at any place", () => {
    const fields = fc.record({ topic, payload: binary, qos, packetId, isRetained: fc.boolean() });
    fc.assert(
      fc.property(fc.tuple(fields, publishProperties, version, fc.nat()), ([publish, properties, level, cut]) => {
        const bytes = encodePublish({ ...publish, properties }, level);
        const at = cut % bytes.length;
        const packets: ClientPacket[] = [];
        const framer = new Framer(2 ** 20);
        for (const chunk of [bytes.subarray(0, at), bytes.subarray(at)]) {
          framer.push(chunk, (frame) => packets.push(decodePacket(frame, level)) > 0);
        }
        const expected = { ...publish, packetId: publish.qos === 0 ? 0 : publish.packetId };
        expect(packets).toEqual([
          { type: "publish", isDuplicate: false, ...expected, properties: level === 5 ? properties : {} },
        ]);
      }),
    );
  });

  it("decodes the CONNECT and SUBSCRIBE of another implementation", () => {
    fc.assert(
      fc.property(fc.tuple(text, topic, binary, version, qos), ([clientId, filter, payload, level, willQos]) => {
        const connect = mqttPacket.generate({
          cmd: "connect",
          protocolId: "MQTT",
          protocolVersion: level,
          clean: true,
          clientId,
          keepalive: 30,
          will: { topic: filter, payload, qos: willQos, retain: true },
          username: "name",
          password: payload,
        });
        expect(decodeAll(connect, level)).toMatchObject([
          {
            type: "connect",
            version: level,
            clientId,
            will: { topic: filter, payload, qos: willQos },
            password: payload,
          },
        ]);
        const subscribe = mqttPacket.generate(
          { cmd: "subscribe", messageId: 9, subscriptions: [{ topic: filter, qos: willQos }] },
          { protocolVersion: level },
        );
        expect(decodeAll(subscribe, level)).toMatchObject([{ packetId: 9, requests: [{ filter, qos: willQos }] }]);
      }),
    );
  });

  it("turns a mutated PUBLISH and random bytes after it into packets or a PacketError", () => {
    const packet = encodePublish(
      { topic: "a/b", payload: Buffer.from("x"), qos: 1, packetId: 1, properties: { contentType: "t" } },
      5,
    );
    const mutation = fc.tuple(fc.nat(packet.length - 1), fc.nat(255));
    fc.assert(
      fc.property(
        fc.array(mutation, { maxLength: 4 }),
        fc.uint8Array({ maxLength: 30 }),
        version,
        (changes, tail, level) => {
          const bytes = Buffer.concat([packet, tail]);
          for (const [at, value] of changes) bytes[at] = value;
          try {
            decodeAll(bytes, level);
          } catch (error) {
            expect(error).toBeInstanceOf(PacketError);
          }
        },
      ),
      { numRuns: 5000 },
    );
  });
});
