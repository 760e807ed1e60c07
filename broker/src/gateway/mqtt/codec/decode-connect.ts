import type { ByteReader } from "./byte-reader.ts";
import { readProperties } from "./decode-properties.ts";
import type { ConnectPacket, ProtocolVersion, QoS, Will } from "./packet.ts";
import { malformed, PacketError, protocolError, UNSUPPORTED_PROTOCOL_VERSION } from "./packet-error.ts";
import { NO_PROPERTIES } from "./properties.ts";

/** The bits of the connect flags (MQTT 5.0, section 3.1.2.3). */
interface ConnectFlags {
  readonly isClean: boolean;
  readonly hasWill: boolean;
  readonly willQos: QoS;
  readonly isWillRetained: boolean;
  readonly hasUserName: boolean;
  readonly hasPassword: boolean;
}

/**
 * Decodes CONNECT (MQTT 5.0 and 3.1.1, section 3.1). @throws PacketError; with {@link UNSUPPORTED_PROTOCOL_VERSION} for a level other than 4 and 5, and for
 * the protocol name MQIsdp of 3.1.
 */
export function decodeConnect(reader: ByteReader): ConnectPacket {
  const version = readVersion(reader);
  const flags = readFlags(reader.readByte(), version);
  const keepAliveSeconds = reader.readUint16();
  const properties = version === 5 ? readProperties(reader, "connect") : NO_PROPERTIES;
  if (properties.authenticationData !== undefined && properties.authenticationMethod === undefined) {
    throw protocolError("authentication data without an authentication method");
  }
  const clientId = reader.readString();
  const will = flags.hasWill ? readWill(reader, version, flags) : undefined;
  const userName = flags.hasUserName ? reader.readString() : undefined;
  const password = flags.hasPassword ? reader.readBinary() : undefined;
  reader.expectEnd();
  const { isClean } = flags;
  return { type: "connect", version, isClean, keepAliveSeconds, clientId, will, userName, password, properties };
}

function readVersion(reader: ByteReader): ProtocolVersion {
  const name = reader.readString();
  const level = reader.readByte();
  if (name === "MQTT" && (level === 4 || level === 5)) return level;
  if (name === "MQTT" || name === "MQIsdp") {
    throw new PacketError(
      UNSUPPORTED_PROTOCOL_VERSION,
      `${name} of level ${level}: MQTT of level 4 or 5 is understood`,
    );
  }
  throw malformed("the protocol name is not MQTT"); // [MQTT-3.1.2-1]
}

function readFlags(bits: number, version: ProtocolVersion): ConnectFlags {
  if ((bits & 0x01) !== 0) throw malformed("the reserved connect flag is set"); // [MQTT-3.1.2-3]
  const hasWill = (bits & 0x04) !== 0;
  const willQos = (bits >> 3) & 0x03;
  const isWillRetained = (bits & 0x20) !== 0;
  if (willQos === 3) throw malformed("the will has QoS 3"); // [MQTT-3.1.2-12]
  if (!hasWill && (willQos !== 0 || isWillRetained)) throw malformed("will flags without a will"); // [MQTT-3.1.2-11, -13]
  const hasUserName = (bits & 0x80) !== 0;
  const hasPassword = (bits & 0x40) !== 0;
  if (version === 4 && hasPassword && !hasUserName) throw malformed("a password without a user name"); // 3.1.1, [MQTT-3.1.2-22]
  return { isClean: (bits & 0x02) !== 0, hasWill, willQos: willQos as QoS, isWillRetained, hasUserName, hasPassword };
}

function readWill(reader: ByteReader, version: ProtocolVersion, flags: ConnectFlags): Will {
  const properties = version === 5 ? readProperties(reader, "will") : NO_PROPERTIES;
  const topic = reader.readString();
  const payload = reader.readBinary();
  return { topic, payload, qos: flags.willQos, isRetained: flags.isWillRetained, properties };
}
