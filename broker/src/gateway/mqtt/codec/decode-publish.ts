import type { ByteReader } from "./byte-reader.ts";
import { readProperties } from "./decode-properties.ts";
import type { ProtocolVersion, PublishPacket, QoS } from "./packet.ts";
import { malformed, PacketError, protocolError } from "./packet-error.ts";
import { NO_PROPERTIES } from "./properties.ts";

/** Reason code of MQTT 5.0 for a topic name that the server does not accept. */
const TOPIC_NAME_INVALID = 0x90;

/** Decodes PUBLISH (MQTT 5.0 and 3.1.1, section 3.3). */
export function decodePublish(reader: ByteReader, flags: number, version: ProtocolVersion): PublishPacket {
  const qos = (flags >> 1) & 0x03;
  const isDuplicate = (flags & 0x08) !== 0;
  if (qos === 3) throw malformed("a PUBLISH has QoS 3"); // [MQTT-3.3.1-4]
  if (qos === 0 && isDuplicate) throw malformed("a PUBLISH of QoS 0 is marked as a duplicate"); // [MQTT-3.3.1-2]
  const topic = reader.readString();
  if (topic.includes("+") || topic.includes("#")) {
    throw new PacketError(TOPIC_NAME_INVALID, "a topic name has a wildcard"); // [MQTT-3.3.2-2]
  }
  const packetId = qos === 0 ? 0 : readPacketId(reader);
  const properties = version === 5 ? readProperties(reader, "publish") : NO_PROPERTIES;
  if (topic === "" && properties.topicAlias === undefined) throw protocolError("a PUBLISH names no topic"); // [MQTT-4.7.3-1]
  const payload = reader.readRest();
  return {
    type: "publish",
    topic,
    payload,
    qos: qos as QoS, // 3 was refused
    isDuplicate,
    isRetained: (flags & 0x01) !== 0,
    packetId,
    properties,
  };
}

/** @throws PacketError for 0 ([MQTT-2.2.1-3]; 3.1.1: [MQTT-2.3.1-1]). */
export function readPacketId(reader: ByteReader): number {
  const packetId = reader.readUint16();
  if (packetId === 0) throw protocolError("the packet identifier is 0");
  return packetId;
}
