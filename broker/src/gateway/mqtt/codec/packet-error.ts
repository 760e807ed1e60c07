/** Reason codes for a packet that the codec refuses (MQTT 5.0, section 2.4). */
export const MALFORMED_PACKET = 0x81;
export const PROTOCOL_ERROR = 0x82;
export const PACKET_TOO_LARGE = 0x95;
export const QUOTA_EXCEEDED = 0x97;
export const TOPIC_ALIAS_INVALID = 0x94;
export const UNSUPPORTED_PROTOCOL_VERSION = 0x84;

/**
 * The client sent bytes that are not a packet, or a packet that the standard or a limit forbids. The connection ends. If the packet is a CONNECT that can be
 * decoded, or one of an unknown version, a CONNACK gives the reason, if the client's version has a code for it. A connected 5.0 client gets the reason code in
 * DISCONNECT. All other clients see only the close.
 */
export class PacketError extends Error {
  override readonly name = "PacketError";
  readonly reasonCode: number;

  constructor(reasonCode: number, message: string) {
    super(message);
    this.reasonCode = reasonCode;
  }
}

export function malformed(message: string): PacketError {
  return new PacketError(MALFORMED_PACKET, message);
}

export function protocolError(message: string): PacketError {
  return new PacketError(PROTOCOL_ERROR, message);
}
