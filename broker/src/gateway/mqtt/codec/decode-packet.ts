import { ByteReader } from "./byte-reader.ts";
import { decodeAcknowledgement, decodeAuth, decodeDisconnect } from "./decode-acknowledgement.ts";
import { decodeConnect } from "./decode-connect.ts";
import { decodePublish } from "./decode-publish.ts";
import { decodeSubscribe, decodeUnsubscribe } from "./decode-subscribe.ts";
import type { Frame } from "./framer.ts";
import { type ClientPacket, packetType, type ProtocolVersion } from "./packet.ts";
import { malformed, protocolError } from "./packet-error.ts";

/** Flags that the fixed header of these types must have (MQTT 5.0, section 2.1.3). The flags of PUBLISH vary. All other types must have 0. */
const flagsOfType: Readonly<Record<number, number>> = {
  [packetType.pubrel]: 2,
  [packetType.subscribe]: 2,
  [packetType.unsubscribe]: 2,
};

/**
 * Decodes a client's packet. `version` is the one in the client's CONNECT; it is not used to decode the CONNECT itself.
 * @throws PacketError with the reason code of MQTT 5.0.
 */
export function decodePacket(frame: Frame, version: ProtocolVersion): ClientPacket {
  const { type, flags, body } = frame;
  const reader = new ByteReader(body);
  if (type === packetType.publish) return decodePublish(reader, flags, version);
  if (flags !== (flagsOfType[type] ?? 0)) throw malformed(`the flags of packet type ${type} are ${flags}`);
  switch (type) {
    case packetType.connect:
      return decodeConnect(reader);
    case packetType.puback:
      return decodeAcknowledgement(reader, "puback", version);
    case packetType.pubrec:
      return decodeAcknowledgement(reader, "pubrec", version);
    case packetType.pubrel:
      return decodeAcknowledgement(reader, "pubrel", version);
    case packetType.pubcomp:
      return decodeAcknowledgement(reader, "pubcomp", version);
    case packetType.subscribe:
      return decodeSubscribe(reader, version);
    case packetType.unsubscribe:
      return decodeUnsubscribe(reader, version);
    case packetType.pingreq:
      reader.expectEnd();
      return { type: "pingreq" };
    case packetType.disconnect:
      return decodeDisconnect(reader, version);
    case packetType.auth:
      return decodeAuth(reader, version);
    default:
      throw type === 0
        ? malformed("packet type 0 is reserved")
        : protocolError(`packet type ${type} comes from servers only`);
  }
}
