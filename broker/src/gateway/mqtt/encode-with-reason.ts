import type { Properties } from "./codec/properties.ts";

/** Encodes a packet, with the reason string if the client accepts a packet of that length ([MQTT-3.2.2-19], [MQTT-3.4.2-2], [MQTT-3.5.2-2]). */
export function encodeWithReason(
  encode: (properties: Properties) => Buffer,
  reasonString: string | undefined,
  packetBytesMax: number,
): Buffer {
  const bytes = encode(reasonString === undefined ? {} : { reasonString });
  return bytes.length <= packetBytesMax ? bytes : encode({});
}
