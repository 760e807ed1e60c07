import type { Event } from "../../domain/event.ts";
import { isMarkedRetained, sessionMarks } from "../../domain/session-filter.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { encodePublish, type PublishOrder } from "./codec/encode-packet.ts";
import type { ProtocolVersion } from "./codec/packet.ts";

/** Bytes of PUBLISH packets, and where the packet identifier stands in them; undefined with QoS 0. */
interface Encoding {
  readonly bytes: Buffer;
  readonly identifierAt: number | undefined;
}

interface Variant {
  readonly version: ProtocolVersion;
  readonly order: () => PublishOrder | undefined;
}

/**
 * The packets of events that all clients of a version and QoS get alike: each is encoded once for all of them. They are kept for as long as the event
 * itself is in memory, so they take a small multiple of what the recent events take.
 */
export class Encodings {
  readonly #prefix: string;
  readonly #kept = new WeakMap<Event, Map<number, Encoding>>();

  constructor(extensionPrefix: string) {
    this.#prefix = extensionPrefix;
  }

  /** The packet of a delivery; undefined if `order` finds nothing to send. The caller must not change it. */
  encode(delivery: Delivery, { version, order }: Variant): Buffer | undefined {
    const { event, qos, ticket } = delivery;
    const variant = version * 4 + qos; // a QoS takes two bits
    const known = this.#kept.get(event)?.get(variant);
    const encoding = known ?? encodeOrder(order(), version);
    if (encoding === undefined) return undefined;
    if (known === undefined) this.#keep(event, variant, encoding);
    if (encoding.identifierAt === undefined || ticket === undefined) return encoding.bytes;
    const bytes = Buffer.from(encoding.bytes);
    bytes.writeUInt16BE(ticket, encoding.identifierAt);
    return bytes;
  }

  /** Whether the packet depends on nothing but event, version and QoS, which also excludes what changes with time. */
  isShared({ event, filters, isRepeated, isRetained }: Delivery): boolean {
    if (isRepeated || isRetained === true || filters.some(({ identifier }) => identifier !== undefined)) return false;
    if (event.extensions.length === 0) return true;
    const expiresAt = this.#prefix + sessionMarks.expiresAt;
    return !isMarkedRetained(event, this.#prefix) && !event.extensions.some(([name]) => name === expiresAt);
  }

  #keep(event: Event, variant: number, encoding: Encoding): void {
    const variants = this.#kept.get(event);
    if (variants === undefined) this.#kept.set(event, new Map([[variant, encoding]]));
    else variants.set(variant, encoding);
  }
}

function encodeOrder(order: PublishOrder | undefined, version: ProtocolVersion): Encoding | undefined {
  if (order === undefined) return undefined;
  const bytes = encodePublish(order, version);
  if (order.qos === 0) return { bytes, identifierAt: undefined };
  // The identifier follows the topic, which follows the fixed header; its length has up to four bytes of which all but the last have the high bit.
  let topicAt = 1;
  while (((bytes[topicAt] ?? 0) & 0x80) !== 0) topicAt += 1;
  topicAt += 1;
  return { bytes, identifierAt: topicAt + 2 + bytes.readUInt16BE(topicAt) };
}
