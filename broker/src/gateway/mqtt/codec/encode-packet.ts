import { ByteWriter, variableIntegerBytes } from "./byte-writer.ts";
import { encodeProperties } from "./encode-properties.ts";
import { type AcknowledgementType, packetType, type ProtocolVersion, type QoS } from "./packet.ts";
import { NO_PROPERTIES, type Properties } from "./properties.ts";

export interface ConnackFields {
  readonly isSessionPresent: boolean;
  /** The reason code of 5.0, or the return code of 3.1.1. */
  readonly reasonCode: number;
  readonly properties?: Properties;
}

/** Encodes CONNACK (section 3.2). 3.1.1 has no properties: they are left out. */
export function encodeConnack(fields: ConnackFields, version: ProtocolVersion): Buffer {
  const { isSessionPresent, reasonCode, properties = NO_PROPERTIES } = fields;
  const encoded = version === 5 ? encodeProperties(properties) : undefined;
  const writer = begin(packetType.connack, 2 + (encoded?.byteLength ?? 0));
  writer.writeByte(isSessionPresent ? 1 : 0);
  writer.writeByte(reasonCode);
  encoded?.write(writer);
  return writer.bytes;
}

export interface PublishFields {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: QoS;
  readonly isDuplicate?: boolean;
  readonly isRetained?: boolean;
  /** Needed with QoS 1 and 2. */
  readonly packetId?: number;
  readonly properties?: Properties;
}

/** Encodes PUBLISH (section 3.3). */
export function encodePublish(fields: PublishFields, version: ProtocolVersion): Buffer {
  const { topic, payload, qos, packetId = 0, properties = NO_PROPERTIES } = fields;
  const topicBytes = Buffer.byteLength(topic);
  const encoded = version === 5 ? encodeProperties(properties) : undefined;
  const length = 2 + topicBytes + (qos === 0 ? 0 : 2) + (encoded?.byteLength ?? 0) + payload.length;
  const flags = (fields.isDuplicate === true ? 8 : 0) | (qos << 1) | (fields.isRetained === true ? 1 : 0);
  const writer = begin(packetType.publish, length, flags);
  writer.writeString(topic, topicBytes);
  if (qos > 0) writer.writeUint16(packetId);
  encoded?.write(writer);
  writer.writeBytes(payload);
  return writer.bytes;
}

export interface AcknowledgementFields {
  readonly packetId: number;
  /** 0 if left out; 3.1.1 has none. */
  readonly reasonCode?: number;
  readonly properties?: Properties;
}

/** Encodes PUBACK, PUBREC, PUBREL or PUBCOMP (sections 3.4 to 3.7), as short as the standard allows. */
export function encodeAcknowledgement(
  type: AcknowledgementType,
  fields: AcknowledgementFields,
  version: ProtocolVersion,
): Buffer {
  const { packetId, reasonCode = 0, properties = NO_PROPERTIES } = fields;
  const flags = type === "pubrel" ? 2 : 0;
  const tail = version === 5 ? encodeReason(reasonCode, properties) : NO_BYTES;
  const writer = begin(packetType[type], 2 + tail.length, flags);
  writer.writeUint16(packetId);
  writer.writeBytes(tail);
  return writer.bytes;
}

export interface GrantFields {
  readonly packetId: number;
  /** One for each filter, in the order of the filters. */
  readonly reasonCodes: readonly number[];
  readonly properties?: Properties;
}

/** Encodes SUBACK (section 3.9). */
export function encodeSuback(fields: GrantFields, version: ProtocolVersion): Buffer {
  return encodeGrant(packetType.suback, fields, version);
}

/** Encodes UNSUBACK (section 3.11). In 3.1.1 it has no reason codes. */
export function encodeUnsuback(fields: GrantFields, version: ProtocolVersion): Buffer {
  return encodeGrant(packetType.unsuback, version === 5 ? fields : { ...fields, reasonCodes: [] }, version);
}

export const PINGRESP = Buffer.from([packetType.pingresp << 4, 0]);

/** Encodes DISCONNECT or AUTH (sections 3.14 and 3.15). Servers send them in 5.0 only. */
export function encodeReasoned(type: "disconnect" | "auth", reasonCode: number, properties = NO_PROPERTIES): Buffer {
  const tail = encodeReason(reasonCode, properties);
  const writer = begin(packetType[type], tail.length);
  writer.writeBytes(tail);
  return writer.bytes;
}

const NO_BYTES = Buffer.alloc(0);

function encodeReason(reasonCode: number, properties: Properties): Buffer {
  const encoded = encodeProperties(properties);
  if (encoded.byteLength === 1) return reasonCode === 0 ? NO_BYTES : Buffer.from([reasonCode]);
  const writer = new ByteWriter(1 + encoded.byteLength);
  writer.writeByte(reasonCode);
  encoded.write(writer);
  return writer.bytes;
}

function encodeGrant(type: number, fields: GrantFields, version: ProtocolVersion): Buffer {
  const encoded = version === 5 ? encodeProperties(fields.properties ?? NO_PROPERTIES) : undefined;
  const writer = begin(type, 2 + (encoded?.byteLength ?? 0) + fields.reasonCodes.length);
  writer.writeUint16(fields.packetId);
  encoded?.write(writer);
  for (const code of fields.reasonCodes) writer.writeByte(code);
  return writer.bytes;
}

function begin(type: number, length: number, flags = 0): ByteWriter {
  const writer = new ByteWriter(1 + variableIntegerBytes(length) + length);
  writer.writeByte((type << 4) | flags);
  writer.writeVariableInteger(length);
  return writer;
}
