import mqttPacket, { type Packet } from "mqtt-packet";
import { readHeaders, typeOf } from "./fixed-headers.ts";

/** What the broker did with a mutated packet: it refused the packet with a reason, answered it, or closed without a reason. */
export const outcomes = ["refused", "answered", "closed"] as const;
export type Outcome = (typeof outcomes)[number];

/** What a client sent and received on one connection. */
export interface Exchange {
  /** The version of the client's CONNECT. If a CONNACK came, the version of the CONNACK counts instead. */
  readonly version: 4 | 5;
  /** All bytes that the client sent. */
  readonly sent: Buffer;
  /** Whether the mutant ends with a whole packet, so that the broker reads the packet after it separately. */
  readonly isFollowed: boolean;
  readonly received: Buffer;
  /** Number of answers to the packets before the mutant. */
  readonly answersBefore: number;
}

/** Reason codes that a mutant may cause. Others, such as 0x80 and 0x83, would be failures of the broker. */
const endReasons: ReadonlySet<number | undefined> = new Set([0x81, 0x82, 0x90, 0x93, 0x94, 0x95]);
const connectReasons: Readonly<Record<4 | 5, ReadonlySet<number | undefined>>> = {
  4: new Set([0, 1, 2]),
  // The last two concern the will: an invalid topic, and a payload that claims to be UTF-8 but is not (MQTT 5.0, table 3-1).
  5: new Set([0, 0x81, 0x82, 0x84, 0x85, 0x8c, 0x95, 0x90, 0x99]),
};

/** Packet types of answers, and the packet type that each answers. */
const requestOf: ReadonlyMap<number, number> = new Map([
  [typeOf.puback, typeOf.publish],
  [typeOf.pubrec, typeOf.publish],
  [typeOf.pubcomp, typeOf.pubrel],
  [typeOf.suback, typeOf.subscribe],
  [typeOf.unsuback, typeOf.unsubscribe],
  [typeOf.pingresp, typeOf.pingreq],
]);

/** Reads the whole packets with another implementation. @throws Error for malformed bytes. */
export function readAnswers(received: Buffer, version: 4 | 5): readonly Packet[] {
  const packets: Packet[] = [];
  const parser = mqttPacket.parser({ protocolVersion: version });
  parser.on("packet", (packet) => packets.push(packet));
  parser.on("error", (error: Error) => {
    throw error;
  });
  parser.parse(received);
  return packets;
}

/** The version that the broker uses: a CONNACK of 5.0 is longer, because it has properties. */
export function versionOf({ version, received }: Pick<Exchange, "version" | "received">): 4 | 5 {
  const length = received[1];
  return length === undefined ? version : length > 2 ? 5 : 4;
}

/** Returns what the broker did with the mutant. @throws Error if the protocol does not allow the broker's answers. */
export function judge(exchange: Exchange): Outcome {
  const { received, sent, isFollowed, answersBefore } = exchange;
  const version = versionOf(exchange);
  const [answers, headers, requests] = [readAnswers(received, version), readHeaders(received), readHeaders(sent)];
  if (!headers.endsBetweenPackets || answers.length !== headers.types.length) throw new Error("an answer is cut short");
  const [connack] = answers;
  if (connack === undefined) return "closed"; // a client without CONNECT gets no answer
  checkConnack(connack, answers.length, version);
  checkCounts(headers.types, requests.types);
  const last = answers.at(-1);
  if (last?.cmd === "disconnect" || answers.length === 1) {
    if (last?.cmd === "disconnect") checkDisconnect(last, version);
    if (last?.cmd === "disconnect" || codeOf(connack) !== 0) return "refused";
  }
  if (isAnswered(answers, answersBefore)) return "answered";
  const mayBeSilent = version === 4 || !isFollowed || requests.types.includes(typeOf.disconnect);
  if (!mayBeSilent) throw new Error("the broker closed without a reason");
  return "closed";
}

/** Whether the packet after the mutant is answered: then the broker read the mutant as one or more packets. */
export function isAnswered(answers: readonly Packet[], answersBefore: number): boolean {
  return answers.slice(answersBefore).some((answer) => answer.cmd === "pingresp" || isLastPuback(answer));
}

/** Identifier of the publish that follows a mutated publish. */
export const lastPacketId = 65_535;

function isLastPuback(answer: Packet): boolean {
  return answer.cmd === "puback" && answer.messageId === lastPacketId;
}

function codeOf(packet: Packet): number | undefined {
  if (packet.cmd === "connack") return packet.reasonCode ?? packet.returnCode;
  return packet.cmd === "disconnect" ? packet.reasonCode : undefined;
}

function checkConnack(connack: Packet, count: number, version: 4 | 5): void {
  const code = codeOf(connack);
  const isLegal = connack.cmd === "connack" && connectReasons[version].has(code) && (code === 0 || count === 1);
  if (!isLegal) throw new Error(`the first answer is ${JSON.stringify(connack)}`);
}

function checkDisconnect(disconnect: Packet, version: 4 | 5): void {
  if (version === 4 || !endReasons.has(codeOf(disconnect))) throw new Error(JSON.stringify(disconnect));
}

/** Checks that there is one CONNACK, at most one DISCONNECT and only at the end, and no more answers than requests. */
function checkCounts(answers: readonly number[], requests: readonly number[]): void {
  if (answers.lastIndexOf(typeOf.connack) !== 0) throw new Error("a second CONNACK");
  const end = answers.indexOf(typeOf.disconnect);
  if (end !== -1 && end !== answers.length - 1) throw new Error("a packet follows DISCONNECT");
  for (const [answer, request] of requestOf) {
    const [answered, asked] = [countOf(answers, answer), countOf(requests, request)];
    if (answered > asked) throw new Error(`${answered} answers of type ${answer} to ${asked} packets`);
  }
}

function countOf(types: readonly number[], type: number): number {
  return types.filter((one) => one === type).length;
}
