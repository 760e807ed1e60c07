import { describe, expect, it } from "vitest";
import { decodePacket } from "./decode-packet.ts";
import { type Frame, Framer } from "./framer.ts";
import type { ClientPacket, ProtocolVersion } from "./packet.ts";
import {
  MALFORMED_PACKET as MALFORMED,
  PacketError,
  PROTOCOL_ERROR,
  QUOTA_EXCEEDED,
  TOPIC_ALIAS_INVALID,
  UNSUPPORTED_PROTOCOL_VERSION,
} from "./packet-error.ts";

function decode(hex: string, version: ProtocolVersion): ClientPacket {
  const frames: Frame[] = [];
  new Framer(100_000).push(Buffer.from(hex.replaceAll(" ", ""), "hex"), (frame) => frames.push(frame) > 0);
  const [frame] = frames;
  if (frame === undefined || frames.length > 1) throw new Error(`${frames.length} packets in ${hex}`);
  return decodePacket(frame, version);
}

function reasonOf(hex: string, version: ProtocolVersion): number {
  try {
    decode(hex, version);
  } catch (error) {
    if (error instanceof PacketError) return error.reasonCode;
    throw error;
  }
  return 0;
}

const name = "00044d515454"; // "MQTT"

describe("CONNECT", () => {
  it("reads every field of 5.0", () => {
    const packet = decode(
      `10 2c ${name} 05 f6 003c 08 1100 00000a 210005 0001 63 07 18 00000005 01 01 0001 74 0002 6869 0001 75 0002 7077`,
      5,
    );
    expect(packet).toEqual({
      type: "connect",
      version: 5,
      isClean: true,
      keepAliveSeconds: 60,
      clientId: "c",
      will: {
        topic: "t",
        payload: Buffer.from("hi"),
        qos: 2,
        isRetained: true,
        properties: { willDelayInterval: 5, payloadFormatIndicator: 1 },
      },
      userName: "u",
      password: Buffer.from("pw"),
      properties: { sessionExpiryInterval: 10, receiveMaximum: 5 },
    });
  });

  it("reads the shortest CONNECT of 3.1.1", () => {
    expect(decode(`10 0c ${name} 04 02 0000 0000`, 4)).toMatchObject({ version: 4, isClean: true, clientId: "" });
  });

  it.each([
    ["a reserved flag, [MQTT-3.1.2-3]", `10 0c ${name} 04 03 0000 0000`, MALFORMED],
    ["a will of QoS 3, [MQTT-3.1.2-12]", `10 12 ${name} 04 1e 0000 0000 0001 74 0001 68`, MALFORMED],
    ["a will QoS without a will, [MQTT-3.1.2-11]", `10 0c ${name} 04 0a 0000 0000`, MALFORMED],
    ["will retain without a will, [MQTT-3.1.2-13]", `10 0c ${name} 04 22 0000 0000`, MALFORMED],
    ["3.1.1: a password without a user name", `10 0f ${name} 04 42 0000 0000 0001 70`, MALFORMED],
    ["5.0: a password without a user name", `10 10 ${name} 05 42 0000 00 0000 0001 70`, 0],
    ["level 3", `10 0c ${name} 03 02 0000 0000`, UNSUPPORTED_PROTOCOL_VERSION],
    ["level 6", `10 0d ${name} 06 02 0000 00 0000`, UNSUPPORTED_PROTOCOL_VERSION],
    ["MQIsdp of level 3", "10 0e 00064d5149736470 03 02 0000 0000", UNSUPPORTED_PROTOCOL_VERSION],
    ["another protocol's name, [MQTT-3.1.2-1]", "10 0c 00044d515458 04 02 0000 0000", MALFORMED],
    ["no client identifier", `10 0a ${name} 04 02 0000`, MALFORMED],
    ["bytes after the last field", `10 0d ${name} 04 02 0000 0000 00`, MALFORMED],
    ["flags of the fixed header", `11 0c ${name} 04 02 0000 0000`, MALFORMED],
    ["receive maximum 0", `10 10 ${name} 05 02 0000 03 210000 0000`, PROTOCOL_ERROR],
    ["maximum packet size 0", `10 12 ${name} 05 02 0000 05 2700000000 0000`, PROTOCOL_ERROR],
    ["request problem information 2", `10 0f ${name} 05 02 0000 02 1702 0000`, PROTOCOL_ERROR],
    ["session expiry twice", `10 17 ${name} 05 02 0000 0a 1100000001 1100000001 0000`, PROTOCOL_ERROR],
    ["a topic alias, which belongs to PUBLISH", `10 10 ${name} 05 02 0000 03 230001 0000`, MALFORMED],
    ["an unknown property", `10 0f ${name} 05 02 0000 02 7f00 0000`, MALFORMED],
    ["properties longer than the packet", `10 0d ${name} 05 02 0000 7f 0000`, MALFORMED],
    ["authentication data without a method", `10 10 ${name} 05 02 0000 03 160000 0000`, PROTOCOL_ERROR],
  ])("gives the reason code for %s", (_, hex, reasonCode) => {
    expect(reasonOf(hex, 4)).toBe(reasonCode);
  });
});

describe("PUBLISH", () => {
  it("accepts a thousand user properties, and no more", () => {
    expect(decode(withUserProperties(1_000), 5)).toMatchObject({ type: "publish" });
    expect(reasonOf(withUserProperties(1_001), 5)).toBe(QUOTA_EXCEEDED);
  });

  it("reads topic, identifier and payload", () => {
    expect(decode("3d 09 0003 612f62 000a 6869", 4)).toEqual({
      type: "publish",
      topic: "a/b",
      payload: Buffer.from("hi"),
      qos: 2,
      isDuplicate: true,
      isRetained: true,
      packetId: 10,
      properties: {},
    });
  });

  it("keeps the order of user properties and their repetitions, [MQTT-3.3.2-18]", () => {
    const packet = decode(
      "30 20 0001 74 15 26 0001 62 0001 31 26 0001 61 0001 32 26 0001 62 0001 33 7061796c6f6164",
      5,
    );
    expect(packet).toMatchObject({
      properties: {
        userProperties: [
          ["b", "1"],
          ["a", "2"],
          ["b", "3"],
        ],
      },
      payload: Buffer.from("payload"),
    });
  });

  it.each<[string, string, ProtocolVersion, number]>([
    ["QoS 3, [MQTT-3.3.1-4]", "36 05 0001 74 0001", 4, MALFORMED],
    ["QoS 0 as a duplicate, [MQTT-3.3.1-2]", "38 03 0001 74", 4, MALFORMED],
    ["packet identifier 0", "32 05 0001 74 0000", 4, PROTOCOL_ERROR],
    ["a wildcard in the topic, [MQTT-3.3.2-2]", "30 03 0001 23", 4, 0x90],
    ["3.1.1: no topic, [MQTT-4.7.3-1]", "30 02 0000", 4, PROTOCOL_ERROR],
    ["5.0: no topic and no alias", "30 03 0000 00", 5, PROTOCOL_ERROR],
    ["5.0: an alias in place of the topic", "30 06 0000 03 230001", 5, 0],
    ["topic alias 0, [MQTT-3.3.2-8]", "30 07 0001 74 03 230000", 5, TOPIC_ALIAS_INVALID],
    ["a subscription identifier, [MQTT-3.3.4-6]", "30 06 0001 74 02 0b01", 5, PROTOCOL_ERROR],
    ["U+0000 in the topic, [MQTT-1.5.4-2]", "30 03 0001 00", 4, MALFORMED],
    ["a surrogate in the topic, [MQTT-1.5.4-1]", "30 05 0003 eda080", 4, MALFORMED],
    ["an overlong encoding in the topic", "30 04 0002 c080", 4, MALFORMED],
    ["a byte order mark, which is not an error, [MQTT-1.5.4-3]", "30 05 0003 efbbbf", 4, 0],
    ["a topic longer than the packet", "30 03 0004 74", 4, MALFORMED],
    ["a property length with a byte that it does not need", "30 05 0001 74 8000", 5, MALFORMED],
  ])("gives the reason code for %s", (...[, hex, version, reasonCode]) => {
    expect(reasonOf(hex, version)).toBe(reasonCode);
  });
});

/** The bytes after the first byte of a packet with `count` filters. */
function withFilters(count: number, each: string): string {
  const body = `0007${each.repeat(count)}`;
  return `${toVariableInteger(body.length / 2)}${body}`;
}

/** A PUBLISH to `a` with `count` user properties. */
function withUserProperties(count: number): string {
  const properties = "26000161000162".repeat(count);
  return `30${toVariableInteger(3 + 2 + 7 * count)}000161${toVariableInteger(7 * count)}${properties}`;
}

/** A variable byte integer of two bytes. */
function toVariableInteger(value: number): string {
  return `${((value % 128) | 128).toString(16)}${(value >> 7).toString(16).padStart(2, "0")}`;
}

describe("SUBSCRIBE and UNSUBSCRIBE", () => {
  it("reads the options of 5.0", () => {
    expect(decode("82 09 0007 02 0b05 0001 61 2d", 5)).toEqual({
      type: "subscribe",
      packetId: 7,
      properties: { subscriptionIdentifiers: [5] },
      requests: [{ filter: "a", qos: 1, isNoLocal: true, isRetainAsPublished: true, retainHandling: 2 }],
    });
  });

  it("accepts as many filters as a session may have, and no more", () => {
    expect(decode(`82${withFilters(1_000, "00016100")}`, 4)).toMatchObject({ type: "subscribe" });
    expect(reasonOf(`82${withFilters(1_001, "00016100")}`, 4)).toBe(QUOTA_EXCEEDED);
    expect(reasonOf(`a2${withFilters(1_001, "000161")}`, 4)).toBe(QUOTA_EXCEEDED);
  });

  it("reads several filters in order", () => {
    expect(decode("a2 08 0007 0001 61 0001 62", 4)).toMatchObject({ filters: ["a", "b"] });
  });

  it.each<[string, string, ProtocolVersion, number]>([
    ["flags other than 2, [MQTT-3.8.1-1]", "80 06 0007 0001 61 00", 4, MALFORMED],
    ["UNSUBSCRIBE with flags other than 2, [MQTT-3.10.1-1]", "a0 05 0007 0001 61", 4, MALFORMED],
    ["no filter, [MQTT-3.8.3-2]", "82 02 0007", 4, MALFORMED],
    ["UNSUBSCRIBE without a filter, [MQTT-3.10.3-2]", "a2 02 0007", 4, MALFORMED],
    ["an empty filter, [MQTT-4.7.3-1]", "82 05 0007 0000 00", 4, PROTOCOL_ERROR],
    ["QoS 3", "82 06 0007 0001 61 03", 4, MALFORMED],
    ["3.1.1: reserved bits, [MQTT-3.8.3-4]", "82 06 0007 0001 61 04", 4, MALFORMED],
    ["5.0: reserved bits, [MQTT-3.8.3-5]", "82 07 0007 00 0001 61 40", 5, MALFORMED],
    ["retain handling 3", "82 07 0007 00 0001 61 30", 5, PROTOCOL_ERROR],
    [
      "no local on a shared subscription, [MQTT-3.8.3-4]",
      "82 10 0007 00 000a 247368617265 2f672f61 04",
      5,
      PROTOCOL_ERROR,
    ],
    ["subscription identifier 0", "82 09 0007 02 0b00 0001 61 00", 5, PROTOCOL_ERROR],
    ["two subscription identifiers", "82 0b 0007 04 0b01 0b02 0001 61 00", 5, PROTOCOL_ERROR],
    ["a filter without options", "82 05 0007 0001 61", 4, MALFORMED],
  ])("gives the reason code for %s", (...[, hex, version, reasonCode]) => {
    expect(reasonOf(hex, version)).toBe(reasonCode);
  });
});

describe("acknowledgements, PINGREQ, DISCONNECT and AUTH", () => {
  it.each<[string, ProtocolVersion, object]>([
    ["40 02 0001", 4, { type: "puback", packetId: 1, reasonCode: 0 }],
    ["50 03 0001 97", 5, { type: "pubrec", packetId: 1, reasonCode: 0x97 }],
    ["62 02 0001", 5, { type: "pubrel", packetId: 1, reasonCode: 0 }],
    ["70 07 0001 92 03 1f0000", 5, { type: "pubcomp", reasonCode: 0x92, properties: { reasonString: "" } }],
    ["c0 00", 4, { type: "pingreq" }],
    ["e0 00", 4, { type: "disconnect", reasonCode: 0 }],
    ["e0 07 04 05 1100000000", 5, { type: "disconnect", reasonCode: 4, properties: { sessionExpiryInterval: 0 } }],
    ["f0 06 19 04 15 0001 78", 5, { type: "auth", reasonCode: 0x19, properties: { authenticationMethod: "x" } }],
  ])("reads %s", (hex, version, packet) => {
    expect(decode(hex, version)).toMatchObject(packet);
  });

  it.each<[string, string, ProtocolVersion, number]>([
    ["packet type 0", "00 00", 4, MALFORMED],
    ["CONNACK, which is the server's", "20 02 0000", 4, PROTOCOL_ERROR],
    ["PINGRESP, which is the server's", "d0 00", 4, PROTOCOL_ERROR],
    ["PUBREL with flags 0, [MQTT-3.6.1-1]", "60 02 0001", 4, MALFORMED],
    ["PUBACK for identifier 0", "40 02 0000", 4, PROTOCOL_ERROR],
    ["3.1.1: PUBACK of three bytes", "40 03 0001 00", 4, MALFORMED],
    ["PUBACK with a reason of another packet", "40 03 0001 92", 5, PROTOCOL_ERROR],
    ["PINGREQ with a body", "c0 01 00", 4, MALFORMED],
    ["3.1.1: DISCONNECT with a body", "e0 01 00", 4, MALFORMED],
    ["DISCONNECT with a reason of servers", "e0 01 8e", 5, PROTOCOL_ERROR],
    ["3.1.1: AUTH", "f0 00", 4, MALFORMED],
    ["AUTH with reason 0, which is the server's", "f0 00", 5, PROTOCOL_ERROR],
  ])("refuses %s", (...[, hex, version, reasonCode]) => {
    expect(reasonOf(hex, version)).toBe(reasonCode);
  });
});
