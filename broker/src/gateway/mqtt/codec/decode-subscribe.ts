import { sessionFiltersMax } from "../../../domain/session-filter.ts";
import type { ByteReader } from "./byte-reader.ts";
import { readProperties } from "./decode-properties.ts";
import { readPacketId } from "./decode-publish.ts";
import type { ProtocolVersion, QoS, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from "./packet.ts";
import { malformed, PacketError, protocolError, QUOTA_EXCEEDED } from "./packet-error.ts";
import { NO_PROPERTIES } from "./properties.ts";

/** Decodes SUBSCRIBE (MQTT 5.0 and 3.1.1, section 3.8). The filters may be invalid. */
export function decodeSubscribe(reader: ByteReader, version: ProtocolVersion): SubscribePacket {
  const packetId = readPacketId(reader);
  const properties = version === 5 ? readProperties(reader, "subscribe") : NO_PROPERTIES;
  const requests: SubscriptionRequest[] = [];
  do {
    checkCount(requests.length);
    requests.push(readRequest(reader, version));
  } while (!reader.isAtEnd);
  return { type: "subscribe", packetId, requests, properties };
}

/** Decodes UNSUBSCRIBE (MQTT 5.0 and 3.1.1, section 3.10). */
export function decodeUnsubscribe(reader: ByteReader, version: ProtocolVersion): UnsubscribePacket {
  const packetId = readPacketId(reader);
  const properties = version === 5 ? readProperties(reader, "unsubscribe") : NO_PROPERTIES;
  const filters: string[] = [];
  do {
    checkCount(filters.length);
    filters.push(readFilter(reader));
  } while (!reader.isAtEnd);
  return { type: "unsubscribe", packetId, filters, properties };
}

/** Limits a packet to as many filters as a session may have: each costs the broker work. */
function checkCount(countBefore: number): void {
  if (countBefore < sessionFiltersMax) return;
  throw new PacketError(QUOTA_EXCEEDED, `a packet with more than ${sessionFiltersMax} topic filters`);
}

function readRequest(reader: ByteReader, version: ProtocolVersion): SubscriptionRequest {
  const filter = readFilter(reader);
  const options = reader.readByte();
  const qos = options & 0x03;
  if (qos === 3) throw malformed("a subscription asks for QoS 3"); // 3.1.1: [MQTT-3.8.3-4]
  if (version === 4) {
    if (options > 2) throw malformed("reserved bits of the requested QoS are set"); // 3.1.1: [MQTT-3.8.3-4]
    return { filter, qos: qos as QoS, isNoLocal: false, isRetainAsPublished: false, retainHandling: 0 };
  }
  const isNoLocal = (options & 0x04) !== 0;
  const retainHandling = (options >> 4) & 0x03;
  if ((options & 0xc0) !== 0) throw malformed("reserved bits of the subscription options are set"); // [MQTT-3.8.3-5]
  if (retainHandling === 3) throw protocolError("the retain handling is 3");
  if (isNoLocal && filter.startsWith("$share/")) throw protocolError("no local on a shared subscription"); // [MQTT-3.8.3-4]
  return {
    filter,
    qos: qos as QoS, // 3 was refused
    isNoLocal,
    isRetainAsPublished: (options & 0x08) !== 0,
    retainHandling: retainHandling as SubscriptionRequest["retainHandling"], // 3 was refused
  };
}

function readFilter(reader: ByteReader): string {
  const filter = reader.readString();
  if (filter === "") throw protocolError("a topic filter is empty"); // [MQTT-4.7.3-1]
  return filter;
}
