import mqttPacket, { type Packet } from "mqtt-packet";
import type { Random } from "../../harness/random.ts";
import { edgeNumbers, type OddValues } from "./odd-values.ts";

export type MqttVersion = 4 | 5;

/** Characters of the longest text. MQTT allows 65,535 bytes (section 1.5.4), and a character of OddValues takes up to four. */
const textMax = 16_000;
const prefixed = [
  "svc-qos",
  "svc-retain",
  "svc-expires-at",
  "svc-token",
  "svc-origin",
  "svc-publish-key",
  "svc-x",
  "groupId",
];

/** A CONNECT packet; one in four has odd fields. `name` is the client identifier of the others. */
export function oddConnect(values: OddValues, version: MqttVersion, name: string): Buffer {
  const { random } = values;
  const clean = random.below(2) === 0;
  const usual = { cmd: "connect", clientId: name, clean, keepalive: 0 };
  const odd = random.below(4) === 0 ? oddConnectFields(values, version) : {};
  return toBytes({ ...usual, ...odd }, version) ?? toBytes(usual, version) ?? Buffer.alloc(0);
}

/** A random packet of a connected client; undefined if the library cannot encode it. */
export function oddPacket(values: OddValues, version: MqttVersion): Buffer | undefined {
  const make = values.random.pick([
    publish,
    publish,
    publish,
    subscribe,
    subscribe,
    unsubscribe,
    acknowledgement,
    rare,
  ]);
  return toBytes(make(values, version), version);
}

function toBytes(packet: object, protocolVersion: MqttVersion): Buffer | undefined {
  try {
    const whole = { protocolId: "MQTT", protocolVersion, ...packet } as Packet; // The broker judges the fields.
    return mqttPacket.generate(whole, { protocolVersion });
  } catch {
    return undefined; // The library cannot encode the packet.
  }
}

function publish(values: OddValues, version: MqttVersion): object {
  const { random } = values;
  const properties = {
    ...some(random, { payloadFormatIndicator: random.below(2) === 1 }),
    ...some(random, { messageExpiryInterval: random.pick([0, 1, 2 ** 31, 2 ** 32 - 1]) }),
    ...some(random, { topicAlias: random.pick([1, 2, 100, 101, 65_535]) }),
    ...some(random, { responseTopic: values.text(textMax) }),
    ...some(random, { correlationData: Buffer.from(values.text(textMax)) }),
    ...some(random, { contentType: values.text(textMax) }),
    ...some(random, { userProperties: userProperties(values) }),
  };
  return {
    cmd: "publish",
    topic: random.below(8) === 0 ? "" : values.parameter("topic", textMax),
    payload: values.text(random.pick([0, 20, 70_000])),
    qos: random.below(3),
    messageId: packetId(random),
    dup: random.below(4) === 0,
    retain: random.below(4) === 0,
    ...(version === 5 ? { properties } : {}),
  };
}

function subscribe(values: OddValues, version: MqttVersion): object {
  const { random } = values;
  const subscriptions = Array.from({ length: 1 + random.below(4) }, () => ({
    topic: oddFilter(values),
    qos: random.below(3),
    ...(version === 5 ? { nl: random.below(2) === 0, rap: random.below(2) === 0, rh: random.below(3) } : {}),
  }));
  const properties = {
    ...some(random, { subscriptionIdentifier: random.pick([1, 127, 128, 268_435_455]) }),
    ...some(random, { userProperties: userProperties(values) }),
  };
  return { cmd: "subscribe", messageId: packetId(random), subscriptions, ...(version === 5 ? { properties } : {}) };
}

function unsubscribe(values: OddValues): object {
  const { random } = values;
  const unsubscriptions = Array.from({ length: 1 + random.below(4) }, () => oddFilter(values));
  return { cmd: "unsubscribe", messageId: packetId(random), unsubscriptions };
}

function acknowledgement(values: OddValues): object {
  const { random } = values;
  const cmd = random.pick(["puback", "pubrec", "pubrel", "pubcomp"]);
  return { cmd, messageId: packetId(random), reasonCode: random.pick([0, 0, 0x10, 0x80, 0x92]) };
}

function rare(values: OddValues, version: MqttVersion): object {
  const { random } = values;
  const properties = { sessionExpiryInterval: random.pick([0, 1, 2 ** 32 - 1]) };
  return random.pick([
    { cmd: "pingreq" },
    { cmd: "disconnect", reasonCode: random.pick([0, 4, 0x81]), ...(version === 5 ? { properties } : {}) },
    { cmd: "connect", clientId: "second", clean: true, keepalive: 1 },
    { cmd: "auth", reasonCode: 0x18 },
  ]);
}

function oddConnectFields(values: OddValues, version: MqttVersion): object {
  const { random } = values;
  const will = {
    topic: values.parameter("topic", textMax),
    payload: values.text(textMax),
    qos: random.below(3),
    retain: random.below(2) === 0,
    ...(version === 5 ? { properties: { willDelayInterval: random.pick([0, 1]), contentType: values.text(100) } } : {}),
  };
  const properties = {
    ...some(random, { sessionExpiryInterval: random.pick([0, 1, 2 ** 32 - 1]) }),
    ...some(random, { receiveMaximum: random.pick([1, 65_535]) }),
    ...some(random, { maximumPacketSize: random.pick([1, 20, 2 ** 32 - 1]) }),
    ...some(random, { requestProblemInformation: false }),
    ...some(random, { userProperties: userProperties(values) }),
  };
  return {
    ...some(random, { clientId: values.text(2_000) }),
    ...some(random, { will }),
    ...some(random, { username: values.text(100), password: Buffer.from(values.text(100)) }),
    ...(version === 5 ? { properties } : {}),
  };
}

function oddFilter(values: OddValues): string {
  const { random } = values;
  const filter = values.parameter("topic", textMax);
  return random.pick([filter, filter, `$share/${random.pick(["s", "", "+", "a b"])}/${filter}`, `$share/${filter}`]);
}

function userProperties(values: OddValues): Readonly<Record<string, string>> {
  const { random } = values;
  const name = (): string => random.pick([random.pick(prefixed), values.text(100)]);
  const value = (): string => random.pick([random.pick(edgeNumbers), values.text(5_000)]);
  return Object.fromEntries(Array.from({ length: random.below(4) }, () => [name(), value()]));
}

/** One of a few identifiers, so that packets of one connection refer to each other. */
function packetId(random: Random): number {
  return random.pick([1, 2, 3, 65_535]);
}

/** The given fields half of the time, otherwise none. */
function some<Fields extends object>(random: Random, fields: Fields): Partial<Fields> {
  return random.below(2) === 0 ? {} : fields;
}
