import { binary, connect, packet, properties, publish, subscribe, uint16, unsubscribe, utf8 } from "../bytes.ts";
import type { Case } from "../case.ts";

const MALFORMED = 0x81;
const PROTOCOL_ERROR = 0x82;

interface Wrong {
  /** What is wrong. */
  readonly name: string;
  readonly v4?: readonly string[];
  readonly v5?: readonly string[];
  readonly bytes: (version: 4 | 5) => Uint8Array;
  /** 0x81 if left out. */
  readonly reasonCode?: number;
}

const noUtf8 = binary(Buffer.of(0xc3, 0x28));
const surrogate = binary(Buffer.of(0xed, 0xa0, 0x80));
const nul = binary(Buffer.of(0x61, 0));
const options = Buffer.of(0);

/** Bytes that the standard forbids after CONNECT. */
const afterConnect: readonly Wrong[] = [
  {
    name: "ill-formed UTF-8 in a topic name",
    v4: ["1.5.3-1", "3.3.2-1"],
    v5: ["1.5.4-1", "3.3.2-1"],
    bytes: (v) => publish(v, { topic: noUtf8 }),
  },
  {
    name: "a surrogate in a topic name",
    v4: ["1.5.3-1"],
    v5: ["1.5.4-1"],
    bytes: (v) => publish(v, { topic: surrogate }),
  },
  {
    name: "U+0000 in a topic name",
    v4: ["1.5.3-2", "4.7.3-2"],
    v5: ["1.5.4-2", "4.7.3-2"],
    bytes: (v) => publish(v, { topic: nul }),
  },
  {
    name: "U+0000 in a filter",
    v4: ["4.7.3-2"],
    v5: ["4.7.3-2"],
    bytes: (v) => subscribe(v, Buffer.concat([nul, options])),
  },
  {
    name: "a filter that is not UTF-8",
    v4: ["3.8.3-1"],
    v5: ["3.8.3-1"],
    bytes: (v) => subscribe(v, Buffer.concat([noUtf8, options])),
  },
  {
    name: "an UNSUBSCRIBE of a filter that is not UTF-8",
    v4: ["3.10.3-1"],
    v5: ["3.10.3-1"],
    bytes: (v) => unsubscribe(v, noUtf8),
  },
  {
    name: "a user property that is not UTF-8",
    v5: ["1.5.7-1"],
    bytes: (v) => publish(v, { properties: [Buffer.of(38), utf8("a"), noUtf8] }),
  },
  {
    name: "a response topic that is not UTF-8",
    v5: ["3.3.2-13"],
    bytes: (v) => publish(v, { properties: [Buffer.of(8), noUtf8] }),
  },
  {
    name: "a response topic with a wildcard",
    v5: ["3.3.2-14"],
    bytes: (v) => publish(v, { properties: [Buffer.of(8), utf8("a/#")] }),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a content type that is not UTF-8",
    v5: ["3.3.2-19"],
    bytes: (v) => publish(v, { properties: [Buffer.of(3), noUtf8] }),
  },
  {
    name: "a subscription identifier in a PUBLISH",
    v5: ["3.3.4-6"],
    bytes: (v) => publish(v, { properties: [Buffer.of(11, 1)] }),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "topic alias 0",
    v5: ["3.3.2-8"],
    bytes: (v) => publish(v, { properties: [Buffer.of(35, 0, 0)] }),
    reasonCode: 0x94,
  },
  {
    name: "a topic alias above the maximum",
    v5: ["3.2.2-17", "3.3.2-9"],
    bytes: (v) => publish(v, { properties: [Buffer.of(35, 0xff, 0xff)] }),
    reasonCode: 0x94,
  },
  {
    name: "a property length in more bytes than it needs",
    v5: ["1.5.5-1"],
    bytes: () => packet(0x32, utf8("a"), uint16(1), Buffer.of(0x80, 0), Buffer.from("x")),
  },
  { name: "a packet length in more bytes than it needs", v5: ["1.5.5-1"], bytes: () => Buffer.of(0xc0, 0x80, 0) },
  {
    name: "a packet length of five bytes",
    v4: ["4.8.0-1"],
    v5: ["4.13.1-1"],
    bytes: () => Buffer.of(0x30, 0x80, 0x80, 0x80, 0x80, 1),
  },
  { name: "packet type 0", v4: ["4.8.0-1"], v5: ["4.13.1-1"], bytes: () => Buffer.of(0, 0) },
  {
    name: "a packet that only servers send",
    v4: ["4.8.0-1"],
    v5: ["4.13.1-1", "4.13.2-1"],
    bytes: () => Buffer.of(0xd0, 0),
    reasonCode: PROTOCOL_ERROR,
  },
  { name: "a PUBLISH of QoS 3", v4: ["3.3.1-4"], v5: ["3.3.1-4"], bytes: (v) => publish(v, { first: 0x36 }) },
  {
    name: "a PUBLISH of QoS 0 with the DUP flag",
    v4: ["3.3.1-2"],
    v5: ["3.3.1-2"],
    bytes: (v) => packet(0x38, utf8("a"), properties(v)),
  },
  {
    name: "a PUBLISH of QoS 1 with packet identifier 0",
    v4: ["2.3.1-1"],
    v5: ["2.2.1-3"],
    bytes: (v) => publish(v, { packetId: 0 }),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a SUBSCRIBE with packet identifier 0",
    v4: ["2.3.1-1"],
    v5: ["2.2.1-3"],
    bytes: (v) => packet(0x82, uint16(0), properties(v), utf8("a"), options),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a topic name with a wildcard",
    v4: ["3.3.2-2", "4.7.1-1"],
    v5: ["3.3.2-2", "4.7.0-1"],
    bytes: (v) => publish(v, { topic: utf8("a/+") }),
    reasonCode: 0x90,
  },
  {
    name: "an empty topic name",
    v4: ["4.7.3-1"],
    v5: ["4.7.3-1"],
    bytes: (v) => publish(v, { topic: utf8("") }),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "an empty filter",
    v4: ["4.7.3-1"],
    v5: ["4.7.3-1"],
    bytes: (v) => subscribe(v, Buffer.concat([utf8(""), options])),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a topic name that is shorter than its length says",
    v4: ["4.7.3-3"],
    v5: ["4.7.3-3"],
    bytes: () => packet(0x30, uint16(65_535), Buffer.from("short")),
  },
  {
    name: "a PUBREL with wrong flags",
    v4: ["2.2.2-2", "3.6.1-1"],
    v5: ["2.1.3-1", "3.6.1-1"],
    bytes: () => Buffer.of(0x60, 2, 0, 1),
  },
  {
    name: "a PUBACK with wrong flags",
    v4: ["2.2.2-1", "2.2.2-2"],
    v5: ["2.1.3-1"],
    bytes: () => Buffer.of(0x41, 2, 0, 1),
  },
  {
    name: "a SUBSCRIBE with wrong flags",
    v4: ["2.2.2-2", "3.8.1-1"],
    v5: ["2.1.3-1", "3.8.1-1"],
    bytes: (v) => subscribe(v, Buffer.concat([utf8("a"), options]), 0x80),
  },
  {
    name: "an UNSUBSCRIBE with wrong flags",
    v4: ["2.2.2-2", "3.10.1-1"],
    v5: ["2.1.3-1", "3.10.1-1"],
    bytes: (v) => unsubscribe(v, utf8("a"), 0xa0),
  },
  { name: "a PINGREQ with wrong flags", v4: ["2.2.2-2"], v5: ["2.1.3-1"], bytes: () => Buffer.of(0xc1, 0) },
  {
    name: "a DISCONNECT with wrong flags",
    v4: ["2.2.2-2", "3.14.1-1"],
    v5: ["2.1.3-1", "3.14.1-1"],
    bytes: () => Buffer.of(0xe1, 0),
  },
  { name: "an AUTH with wrong flags", v5: ["3.15.1-1"], bytes: () => Buffer.of(0xf1, 0) },
  {
    name: "an AUTH after a CONNECT without an authentication method",
    v5: ["4.12.0-7"],
    bytes: () => packet(0xf0, Buffer.of(0x18, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "an AUTH with an undefined reason code",
    v5: ["3.15.2-1"],
    bytes: () => packet(0xf0, Buffer.of(0x01, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a SUBSCRIBE without a filter",
    v4: ["3.8.3-3"],
    v5: ["3.8.3-2"],
    bytes: (v) => subscribe(v, Buffer.alloc(0)),
  },
  {
    name: "an UNSUBSCRIBE without a filter",
    v4: ["3.10.3-2"],
    v5: ["3.10.3-2"],
    bytes: (v) => unsubscribe(v, Buffer.alloc(0)),
  },
  {
    name: "a subscription with QoS 3",
    v4: ["3.8.3-4"],
    v5: ["3.8.3-5"],
    bytes: (v) => subscribe(v, Buffer.concat([utf8("a"), Buffer.of(3)])),
  },
  {
    name: "a subscription with reserved bits",
    v4: ["3.8.3-4"],
    v5: ["3.8.3-5"],
    bytes: (v) => subscribe(v, Buffer.concat([utf8("a"), Buffer.of(0xc0)])),
  },
  {
    name: "No Local on a shared subscription",
    v5: ["3.8.3-4"],
    bytes: (v) => subscribe(v, Buffer.concat([utf8("$share/s/a"), Buffer.of(4)])),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a second CONNECT",
    v4: ["3.1.0-2"],
    v5: ["3.1.0-2", "4.13.1-1"],
    bytes: (v) => connect(v),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a DISCONNECT with an undefined reason code",
    v5: ["3.14.2-1"],
    bytes: () => packet(0xe0, Buffer.of(0x03, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a PUBACK with an undefined reason code",
    v5: ["3.4.2-1"],
    bytes: () => packet(0x40, uint16(1), Buffer.of(0x01, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a PUBREC with an undefined reason code",
    v5: ["3.5.2-1"],
    bytes: () => packet(0x50, uint16(1), Buffer.of(0x01, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a PUBREL with an undefined reason code",
    v5: ["3.6.2-1"],
    bytes: () => packet(0x62, uint16(1), Buffer.of(0x80, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a PUBCOMP with an undefined reason code",
    v5: ["3.7.2-1"],
    bytes: () => packet(0x70, uint16(1), Buffer.of(0x80, 0)),
    reasonCode: PROTOCOL_ERROR,
  },
  {
    name: "a packet above Maximum Packet Size",
    v5: ["3.2.2-15"],
    bytes: () => Buffer.of(0x30, 0xff, 0xff, 0x7f),
    reasonCode: 0x95,
  },
];

/** First packets that the standard forbids. */
const inConnect: readonly Wrong[] = [
  { name: "a PUBLISH before CONNECT", v4: ["3.1.0-1"], v5: ["3.1.0-1", "3.14.0-1"], bytes: (v) => publish(v) },
  {
    name: "a wrong protocol name",
    v4: ["3.1.2-1", "3.1.4-1"],
    v5: ["3.1.2-1", "3.1.4-1"],
    bytes: (v) => connect(v, { name: "MQTZ" }),
  },
  {
    name: "a CONNECT with the reserved flag",
    v4: ["3.1.2-3"],
    v5: ["3.1.2-3"],
    bytes: (v) => connect(v, { flags: 0x03 }),
  },
  { name: "will QoS 3", v4: ["3.1.2-14"], v5: ["3.1.2-12"], bytes: (v) => connect(v, { flags: 0x1e }) },
  {
    name: "will QoS without a will",
    v4: ["3.1.2-11", "3.1.2-13"],
    v5: ["3.1.2-11"],
    bytes: (v) => connect(v, { flags: 0x0a }),
  },
  {
    name: "will retain without a will",
    v4: ["3.1.2-11", "3.1.2-15"],
    v5: ["3.1.2-13"],
    bytes: (v) => connect(v, { flags: 0x22 }),
  },
  { name: "a will flag without a will", v4: ["3.1.2-9"], v5: ["3.1.2-9"], bytes: (v) => connect(v, { flags: 0x06 }) },
  {
    name: "a user name flag without a user name",
    v4: ["3.1.2-19"],
    v5: ["3.1.2-17"],
    bytes: (v) => connect(v, { flags: 0x82 }),
  },
  {
    name: "a user name without its flag",
    v4: ["3.1.2-18"],
    v5: ["3.1.2-16"],
    bytes: (v) => connect(v, { payload: [utf8("c"), utf8("name")] }),
  },
  {
    name: "a password flag without a password",
    v4: ["3.1.2-21"],
    v5: ["3.1.2-19"],
    bytes: (v) => connect(v, { flags: 0xc2, payload: [utf8("c"), utf8("name")] }),
  },
  {
    name: "a password without its flag",
    v4: ["3.1.2-20"],
    v5: ["3.1.2-18"],
    bytes: (v) => connect(v, { flags: 0x82, payload: [utf8("c"), utf8("name"), utf8("word")] }),
  },
  {
    name: "a password flag without a user name flag",
    v4: ["3.1.2-22"],
    bytes: (v) => connect(v, { flags: 0x42, payload: [utf8("c"), utf8("word")] }),
  },
  {
    name: "a CONNECT without a client identifier",
    v4: ["3.1.3-3"],
    v5: ["3.1.3-3"],
    bytes: (v) => connect(v, { payload: [] }),
  },
  {
    name: "a client identifier that is not UTF-8",
    v4: ["3.1.3-4"],
    v5: ["3.1.3-4"],
    bytes: (v) => connect(v, { payload: [noUtf8] }),
  },
  {
    name: "a will topic that is not UTF-8",
    v4: ["3.1.3-10"],
    v5: ["3.1.3-11"],
    bytes: (v) => connect(v, { flags: 0x06, payload: [utf8("c"), properties(v), noUtf8, utf8("x")] }),
  },
  {
    name: "a user name that is not UTF-8",
    v4: ["3.1.3-11"],
    v5: ["3.1.3-12"],
    bytes: (v) => connect(v, { flags: 0x82, payload: [utf8("c"), noUtf8] }),
  },
  {
    name: "a CONNECT with payload fields in another order",
    v4: ["3.1.3-1"],
    v5: ["3.1.3-1"],
    bytes: (v) => connect(v, { flags: 0x06, payload: [utf8("topic"), Buffer.from("x")] }),
  },
];

function toCase({ name, bytes, reasonCode = MALFORMED, ...rest }: Wrong): Case {
  return {
    ...rest,
    name: `${name} ends the connection`,
    run: async (context) => {
      const peer = await context.connect();
      peer.sendBytes(bytes(context.version));
      await peer.expectEnded(reasonCode);
    },
  };
}

function toConnectCase({ name, bytes, ...rest }: Wrong): Case {
  return {
    ...rest,
    name: `${name} closes the connection without an answer`,
    run: async (context) => {
      const peer = await context.open();
      peer.sendBytes(bytes(context.version));
      await peer.expectClosed();
    },
  };
}

export const malformedCases: readonly Case[] = [...afterConnect.map(toCase), ...inConnect.map(toConnectCase)];
