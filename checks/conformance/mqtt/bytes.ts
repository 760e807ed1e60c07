/** Builds packets byte by byte, also malformed ones that no library would write. */

export function utf8(text: string): Buffer {
  return binary(Buffer.from(text));
}

/** The length in 16 bits, and then the bytes. */
export function binary(bytes: Uint8Array): Buffer {
  return Buffer.concat([uint16(bytes.length), bytes]);
}

export function uint16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}

/** A Variable Byte Integer (MQTT 5.0, section 1.5.5). */
export function variable(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  do {
    bytes.push((rest % 128) | (rest > 127 ? 0x80 : 0));
    rest = Math.floor(rest / 128);
  } while (rest > 0);
  return Buffer.from(bytes);
}

/** A whole packet: its first byte, its length, and its parts. */
export function packet(first: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(first), variable(body.length), body]);
}

/** Properties with their length; 3.1.1 has none. */
export function properties(version: 4 | 5, ...parts: readonly Uint8Array[]): Buffer {
  const all = Buffer.concat(parts);
  return version === 4 ? Buffer.alloc(0) : Buffer.concat([variable(all.length), all]);
}

export interface ConnectBytes {
  /** Protocol name. */
  readonly name?: string;
  /** Protocol level. */
  readonly level?: number;
  readonly flags?: number;
  readonly properties?: readonly Uint8Array[];
  /** What follows the properties. */
  readonly payload?: readonly Uint8Array[];
}

/** A CONNECT. Fields that are left out have values that the broker accepts. */
export function connect(version: 4 | 5, bytes: ConnectBytes = {}): Buffer {
  const { name = "MQTT", level = version, flags = 0x02, payload = [utf8("bytes")] } = bytes;
  const head = [utf8(name), Buffer.of(level, flags), uint16(0), properties(version, ...(bytes.properties ?? []))];
  return packet(0x10, ...head, ...payload);
}

export interface PublishBytes {
  readonly first?: number;
  readonly topic?: Uint8Array;
  readonly packetId?: number;
  readonly properties?: readonly Uint8Array[];
}

/** A PUBLISH, by default of QoS 1 and with packet identifier 1. */
export function publish(version: 4 | 5, bytes: PublishBytes = {}): Buffer {
  const { first = 0x32, topic = utf8("bytes"), packetId = 1 } = bytes;
  return packet(first, topic, uint16(packetId), properties(version, ...(bytes.properties ?? [])), Buffer.from("x"));
}

/** A SUBSCRIBE with packet identifier 1. */
export function subscribe(version: 4 | 5, payload: Uint8Array, first = 0x82): Buffer {
  return packet(first, uint16(1), properties(version), payload);
}

/** An UNSUBSCRIBE with packet identifier 1. */
export function unsubscribe(version: 4 | 5, payload: Uint8Array, first = 0xa2): Buffer {
  return packet(first, uint16(1), properties(version), payload);
}
