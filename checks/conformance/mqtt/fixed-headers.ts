/** What some bytes contain. */
export interface Headers {
  /** The types of the whole packets. */
  readonly types: readonly number[];
  /** Whether the bytes end with a whole packet, or have a malformed length, after which there are no more packets. */
  readonly endsBetweenPackets: boolean;
}

/** Types of packets by name (section 2.1.2 of MQTT 5.0). */
export const typeOf = {
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
} as const;

const lengthBytesMax = 4;

/** Reads fixed headers and nothing else, up to a length of more than four bytes, which is malformed. */
export function readHeaders(bytes: Buffer): Headers {
  const types: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    let length = 0;
    let digits = 1;
    for (; digits <= lengthBytesMax; digits += 1) {
      const byte = bytes[at + digits];
      if (byte === undefined) return { types, endsBetweenPackets: false };
      length += (byte & 0x7f) * 128 ** (digits - 1);
      if (byte < 0x80) break;
    }
    if (digits > lengthBytesMax) return { types, endsBetweenPackets: true };
    const end = at + 1 + digits + length;
    if (end > bytes.length) return { types, endsBetweenPackets: false };
    types.push((bytes[at] ?? 0) >> 4);
    at = end;
  }
  return { types, endsBetweenPackets: true };
}
