/** Reason codes for a malformed or misplaced packet (MQTT 5.0, section 2.4). */
export const MALFORMED_PACKET = 0x81;
export const PROTOCOL_ERROR = 0x82;
export const PACKET_TOO_LARGE = 0x95;
export const QUOTA_EXCEEDED = 0x97;
export const TOPIC_ALIAS_INVALID = 0x94;
export const UNSUPPORTED_PROTOCOL_VERSION = 0x84;

/**
 * The peer sent bytes that are no packet, or a packet that the standard forbids. The connection ends: a 5.0 client gets the reason code in
 * DISCONNECT or CONNACK, a 3.1.1 client sees the close.
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
