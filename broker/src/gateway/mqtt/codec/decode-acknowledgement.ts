import type { ByteReader } from "./byte-reader.ts";
import { readProperties } from "./decode-properties.ts";
import { readPacketId } from "./decode-publish.ts";
import type {
  AcknowledgementPacket,
  AcknowledgementType,
  AuthPacket,
  DisconnectPacket,
  ProtocolVersion,
} from "./packet.ts";
import { malformed, protocolError } from "./packet-error.ts";
import { NO_PROPERTIES, type Properties, type PropertyPlace } from "./properties.ts";

const publishReasons = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
const releaseReasons = [0x00, 0x92];

/**
 * Reason codes that the broker accepts from a client. They are the codes that a client may send (MQTT 5.0, sections 3.4.2.1 to 3.7.2.1, 3.14.2.1, 3.15.2.1). In
 * PUBACK and PUBREC, the broker also accepts 0x10, which only a server should send.
 */
const reasonCodes: Readonly<Record<AcknowledgementType | "disconnect" | "auth", ReadonlySet<number>>> = {
  puback: new Set(publishReasons),
  pubrec: new Set(publishReasons),
  pubrel: new Set(releaseReasons),
  pubcomp: new Set(releaseReasons),
  disconnect: new Set([0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]),
  auth: new Set([0x18, 0x19]),
};

export function decodeAcknowledgement(
  reader: ByteReader,
  type: AcknowledgementType,
  version: ProtocolVersion,
): AcknowledgementPacket {
  const packetId = readPacketId(reader);
  const reason = version === 5 ? readReason(reader, type) : NO_REASON;
  reader.expectEnd();
  return { type, packetId, ...reason };
}

export function decodeDisconnect(reader: ByteReader, version: ProtocolVersion): DisconnectPacket {
  const reason = version === 5 ? readReason(reader, "disconnect") : NO_REASON;
  reader.expectEnd();
  return { type: "disconnect", ...reason };
}

export function decodeAuth(reader: ByteReader, version: ProtocolVersion): AuthPacket {
  if (version !== 5) throw malformed("3.1.1 has no AUTH");
  const reason = readReason(reader, "auth");
  reader.expectEnd();
  return { type: "auth", ...reason };
}

interface Reason {
  readonly reasonCode: number;
  readonly properties: Properties;
}

const NO_REASON: Reason = { reasonCode: 0, properties: NO_PROPERTIES };

/** The reason code may be left out if it is 0, and the properties if there are none. */
function readReason(reader: ByteReader, place: keyof typeof reasonCodes & PropertyPlace): Reason {
  const reasonCode = reader.isAtEnd ? 0 : reader.readByte();
  if (!reasonCodes[place].has(reasonCode)) {
    throw protocolError(`a client's ${place.toUpperCase()} must not have the reason code 0x${reasonCode.toString(16)}`);
  }
  return { reasonCode, properties: reader.isAtEnd ? NO_PROPERTIES : readProperties(reader, place) };
}
