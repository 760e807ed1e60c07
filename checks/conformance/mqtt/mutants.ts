import mqttPacket, { type Packet } from "mqtt-packet";
import { mutate } from "../../harness/mutation.ts";
import type { Random } from "../../harness/random.ts";
import { converse, type Step } from "../mutants/converse.ts";
import { readHeaders } from "./fixed-headers.ts";
import { isAnswered, judge, lastPacketId, type Outcome, readAnswers, versionOf } from "./mutant-answers.ts";

/** What every attack uses. */
export interface Target {
  readonly port: number;
  /** A topic that mutated packets publish to. */
  readonly topic: string;
  /** A topic that retains one event, of QoS 2. */
  readonly retaining: string;
}

/** What a client sends before its mutated packet. It sends each packet when it has the answers to the previous one. */
type State = readonly SetupPacket[];

interface SetupPacket {
  readonly packet: object;
  readonly answers: readonly Packet["cmd"][];
}

const mutationsMax = 2;

const properties = {
  userProperties: { a: "b" },
  contentType: "text/plain",
  responseTopic: "answers",
  correlationData: Buffer.from("c"),
  messageExpiryInterval: 9,
  topicAlias: 1,
};

/** The states in which a mutant is sent. Those without an event are in the list several times, because they take a fraction of the time. */
function statesOf({ topic, retaining }: Target): readonly State[] {
  const subscribed: SetupPacket = toSubscribe("x/#", { qos: 2, answers: ["suback"] });
  const given = (qos: 1 | 2): SetupPacket => toSubscribe(retaining, { qos, answers: ["suback", "publish"] });
  const received: SetupPacket = { packet: { cmd: "pubrec", messageId: 1 }, answers: ["pubrel"] };
  const sent = { cmd: "publish", topic, payload: "2", qos: 2, messageId: 2 };
  return [
    ...Array.from({ length: 6 }, () => []),
    ...Array.from({ length: 4 }, () => [subscribed]),
    [given(1)],
    [given(2)],
    [given(2), received],
    [{ packet: sent, answers: ["pubrec"] }],
  ];
}

function toSubscribe(topic: string, { qos, answers }: { qos: 1 | 2; answers: SetupPacket["answers"] }): SetupPacket {
  return { packet: { cmd: "subscribe", messageId: 9, subscriptions: [{ topic, qos }] }, answers };
}

/** One packet of each kind that a client may send after CONNECT. */
function packetsOf({ topic }: Target, version: 4 | 5): readonly object[] {
  const acknowledgements = ["puback", "pubrec", "pubrel", "pubcomp"].flatMap((cmd) => [
    { cmd, messageId: 1 },
    { cmd, messageId: 2, reasonCode: version === 5 ? 0x92 : 0, properties: { reasonString: "r" } },
  ]);
  const both = [
    { cmd: "publish", topic, payload: "0", qos: 0 },
    { cmd: "publish", topic, payload: "1", qos: 1, messageId: 1, properties },
    { cmd: "publish", topic, payload: "2", qos: 2, messageId: 2, retain: true },
    ...acknowledgements,
    {
      cmd: "subscribe",
      messageId: 3,
      properties: { subscriptionIdentifier: 7 },
      subscriptions: [
        { topic: `${topic}/#`, qos: 2, nl: true, rap: true, rh: 1 },
        { topic: "+/x", qos: 0 },
      ],
    },
    { cmd: "subscribe", messageId: 5, subscriptions: [{ topic: "$share/s/y", qos: 1 }] },
    { cmd: "unsubscribe", messageId: 4, unsubscriptions: ["x/#", "y"] },
    { cmd: "pingreq" },
    { cmd: "disconnect", reasonCode: 4, properties: { sessionExpiryInterval: 0 } },
    { cmd: "connect", clientId: "second", clean: true, keepalive: 1 },
  ];
  return version === 4 ? both : [...both, { cmd: "auth", reasonCode: 0x18, properties: { authenticationMethod: "m" } }];
}

/** A CONNECT with every field. */
function toFullHello(clientId: string): object {
  const willProperties = { willDelayInterval: 1, messageExpiryInterval: 3, userProperties: { a: "b" } };
  return {
    ...toHello(clientId),
    username: "user",
    password: Buffer.from("password"),
    properties: { sessionExpiryInterval: 5, receiveMaximum: 9, maximumPacketSize: 9_999, userProperties: { a: "b" } },
    will: { topic: "w", payload: Buffer.from("w"), qos: 1, retain: true, properties: willProperties },
  };
}

function toHello(clientId: string): object {
  return { cmd: "connect", clientId, clean: true, keepalive: 0 };
}

function toBytes(packet: object, version: 4 | 5): Buffer {
  const whole = { protocolId: "MQTT", protocolVersion: version, ...packet };
  return mqttPacket.generate(whole as Packet, { protocolVersion: version }); // the functions above give it the fields
}

function toMutant(bytes: Buffer, random: Random): Buffer {
  let mutant = bytes;
  for (let left = 1 + random.below(mutationsMax); left > 0 && mutant.length > 0; left -= 1) {
    mutant = mutate(mutant, random, random.below(256));
  }
  return mutant;
}

/** The same character four times: a mutation of it cannot become the client identifier of another lane. */
function clientIdOf(lane: number): string {
  return String.fromCodePoint("0".charCodeAt(0) + lane).repeat(4);
}

/**
 * Sends one mutated packet in a state that the broker has confirmed, and then a packet whose answer shows that the broker still reads. `lane` gives the
 * client its identifier. @throws Error if the protocol does not allow the broker's answers.
 */
export async function attack(target: Target, random: Random, lane: number): Promise<Outcome> {
  const version = random.pick([4, 5] as const);
  const clientId = clientIdOf(lane);
  const isFirst = random.below(20) === 0; // the CONNECT itself is mutated
  const isKept = version === 5 && random.below(8) === 0; // the session is in the store, and waits for writes
  const hello = { ...toHello(clientId), ...(isKept && { properties: { sessionExpiryInterval: 5 } }) };
  const state: State = isFirst ? [] : [{ packet: hello, answers: ["connack"] }, ...random.pick(statesOf(target))];
  const packet = isFirst ? toFullHello(clientId) : random.pick(packetsOf(target, version));
  const mutant = toMutant(toBytes(packet, version), random);
  const isPublish = "cmd" in packet && packet.cmd === "publish";
  const last = isPublish
    ? { cmd: "publish", topic: target.topic, payload: "", qos: 1, messageId: lastPacketId }
    : { cmd: "pingreq" };
  try {
    return await talk(target.port, { version, state, mutant, last: toBytes(last, version) });
  } catch (error) {
    const after = state.flatMap(({ answers }) => answers).join() || "nothing";
    const level = version === 4 ? "3.1.1" : "5.0";
    throw new Error(`MQTT ${level} after ${after}: ${mutant.toString("hex")}`, { cause: error });
  }
}

interface Talk {
  readonly version: 4 | 5;
  readonly state: State;
  readonly mutant: Buffer;
  /** The packet after the mutant. */
  readonly last: Buffer;
}

async function talk(port: number, { version, state, mutant, last }: Talk): Promise<Outcome> {
  const read = (received: Buffer): readonly Packet[] => readAnswers(received, versionOf({ version, received }));
  const expected: Packet["cmd"][] = [];
  const steps: Step[] = state.map(({ packet, answers }) => {
    const count = expected.push(...answers);
    return { bytes: toBytes(packet, version), isDone: (received) => read(received).length >= count };
  });
  const before = Buffer.concat(steps.map(({ bytes }) => bytes));
  const sent = Buffer.concat([before, mutant, last]);
  // If the mutant ends inside a packet, the broker reads bytes of `last` as its rest, and may wait for more bytes until the client ends the connection.
  const isFollowed = readHeaders(Buffer.concat([before, mutant])).endsBetweenPackets;
  const isDone = (received: Buffer): boolean => isAnswered(read(received), expected.length);
  const bytes = Buffer.concat([mutant, last]);
  const received = await converse(port, [...steps, { bytes, isDone: isFollowed ? isDone : undefined }]);
  const reached = read(received).slice(0, expected.length);
  if (reached.map(({ cmd }) => cmd).join() !== expected.join()) {
    throw new Error(`the state was not reached: ${received.toString("hex")}`);
  }
  return judge({ version, sent, isFollowed, received, answersBefore: expected.length });
}
