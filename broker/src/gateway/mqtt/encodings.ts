import type { Event } from "../../domain/event.ts";
import { isMarkedRetained, type QoS, sessionMarks } from "../../domain/session-filter.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { encodePublish, type PublishFields } from "./codec/encode-packet.ts";
import type { ProtocolVersion } from "./codec/packet.ts";
import { encodingOverheadBytes, encodingsBytesMax } from "./limits.ts";

/** Bytes of a PUBLISH packet, and the offset of its packet identifier; undefined with QoS 0. */
interface Encoding {
  readonly bytes: Buffer;
  readonly identifierAt: number | undefined;
}

/** The packets of one event, by {@link variantOf}. Undefined if the packets depend on more than version and QoS. */
type Variants = Map<number, Encoding> | undefined;

interface Packet {
  readonly version: ProtocolVersion;
  /** Returns undefined if the client must not get the event. */
  readonly toFields: () => PublishFields | undefined;
}

/**
 * Encodes a packet once if all clients of a version and QoS get the same one. Caches a packet while its event is in memory. If the packets would take
 * more than `bytesMax`, drops all of them.
 */
export class Encodings {
  readonly #prefix: string;
  readonly #bytesMax: number;
  #kept = new WeakMap<Event, { readonly variants: Variants }>();
  /** Bytes of the kept packets, including those whose events have been freed since. */
  #keptBytes = 0;

  constructor(extensionPrefix: string, bytesMax = encodingsBytesMax) {
    this.#prefix = extensionPrefix;
    this.#bytesMax = bytesMax;
  }

  /** The packet of a delivery. The caller must not change it. Undefined if clients get different packets, or if the client must not get the event. */
  encode(delivery: Delivery, { version, toFields }: Packet): Buffer | undefined {
    const { event, qos, ticket } = delivery;
    if (!isFirstAndPlain(delivery)) return undefined;
    const variants = this.#variantsOf(event);
    if (variants === undefined) return undefined;
    const variant = variantOf(version, qos);
    let encoding = variants.get(variant);
    if (encoding === undefined) {
      encoding = encodeFields(toFields(), version);
      if (encoding === undefined) return undefined;
      this.#keep(encoding, event, variant);
    }
    if (encoding.identifierAt === undefined || ticket === undefined) return encoding.bytes;
    const bytes = Buffer.allocUnsafe(encoding.bytes.length);
    encoding.bytes.copy(bytes);
    bytes.writeUInt16BE(ticket, encoding.identifierAt);
    return bytes;
  }

  #keep(encoding: Encoding, event: Event, variant: number): void {
    const bytes = encoding.bytes.length + encodingOverheadBytes;
    if (this.#keptBytes + bytes > this.#bytesMax) {
      this.#kept = new WeakMap();
      this.#keptBytes = 0;
    }
    this.#keptBytes += bytes;
    this.#variantsOf(event)?.set(variant, encoding);
  }

  #variantsOf(event: Event): Variants {
    const known = this.#kept.get(event);
    if (known !== undefined) return known.variants;
    const variants = this.#isAlike(event) ? new Map<number, Encoding>() : undefined;
    this.#kept.set(event, { variants });
    return variants;
  }

  /** Whether all clients of a version and QoS get the same packet. An expiry changes with time, and the retain flag depends on the subscription. */
  #isAlike(event: Event): boolean {
    const expiresAt = this.#prefix + sessionMarks.expiresAt;
    return !isMarkedRetained(event, this.#prefix) && !event.extensions.some(([name]) => name === expiresAt);
  }
}

function variantOf(version: ProtocolVersion, qos: QoS): number {
  return version * 4 + qos; // a QoS takes two bits
}

/** Whether a delivery is neither repeated nor retained and has no subscription identifier: then its packet suits all clients. */
function isFirstAndPlain({ filters, isRepeated, isRetained }: Delivery): boolean {
  if (isRepeated || isRetained === true) return false;
  for (const { identifier } of filters) if (identifier !== undefined) return false;
  return true;
}

function encodeFields(fields: PublishFields | undefined, version: ProtocolVersion): Encoding | undefined {
  if (fields === undefined) return undefined;
  const bytes = inOwnMemory(encodePublish(fields, version));
  if (fields.qos === 0) return { bytes, identifierAt: undefined };
  // The identifier follows the topic, and the topic follows the fixed header. The header ends with a length of up to four bytes; all but its last have the
  // high bit.
  let topicAt = 1;
  while (((bytes[topicAt] ?? 0) & 0x80) !== 0) topicAt += 1;
  topicAt += 1;
  return { bytes, identifierAt: topicAt + 2 + bytes.readUInt16BE(topicAt) };
}

/** Node puts short buffers into pools, and a kept buffer would keep its whole pool in memory. */
function inOwnMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
