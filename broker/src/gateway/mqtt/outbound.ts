import type { Ticket } from "../../domain/delivery-window.ts";
import type { Delivery, EndReason, Peer } from "../../engine/session/peer.ts";
import type { ConnectedSession } from "../../engine/broker.ts";
import { encodeAcknowledgement, encodePublish, type PublishFields } from "./codec/encode-packet.ts";
import type { AcknowledgementPacket, ProtocolVersion } from "./codec/packet.ts";
import type { Encodings } from "./encodings.ts";
import { outboundAliasesMax } from "./limits.ts";
import { toPublish } from "./mapping.ts";
import type { Outbox } from "../shared/connection/outbox.ts";
import type { MqttMetrics } from "./metrics.ts";
import { reason } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";

export interface OutboundParts {
  readonly outbox: Outbox;
  /** Shared by all connections. */
  readonly encodings: Encodings;
  readonly version: ProtocolVersion;
  /** Largest packet that the client accepts, in bytes. */
  readonly packetBytesMax: number;
  /** Topic aliases that the client accepts. */
  readonly topicAliasMax: number;
  readonly settings: Pick<MqttSettings, "extensionPrefix" | "hasEventPlace" | "payload">;
  readonly metrics: Pick<MqttMetrics, "deliveryDropped">;
  readonly onEnded: (why: EndReason) => void;
}

/** Delivers events to one client as PUBLISH, and handles its acknowledgements. */
export class Outbound implements Peer {
  readonly #parts: OutboundParts;
  /** Alias of each topic; the first topics of the connection get one. */
  readonly #aliases = new LazyMap<string, number>();
  #session: ConnectedSession | undefined;

  constructor(parts: OutboundParts) {
    this.#parts = parts;
  }

  /** Sets the session. Call it before anything is acknowledged. */
  begin(session: ConnectedSession): void {
    this.#session = session;
  }

  get hasRoom(): boolean {
    return this.#parts.outbox.hasRoom;
  }

  deliver(delivery: Delivery): void {
    const { outbox } = this.#parts;
    const bytes = this.#encode(delivery);
    if (bytes !== undefined) outbox.write(bytes);
    else if (delivery.ticket !== undefined) this.#leaveOut(delivery, delivery.ticket);
  }

  pass(delivery: Delivery): void {
    const { outbox, metrics } = this.#parts;
    const bytes = outbox.hasRoom ? this.#encode(delivery) : undefined;
    if (bytes !== undefined) outbox.write(bytes);
    else if (!outbox.hasRoom) metrics.deliveryDropped();
  }

  release(ticket: Ticket): void {
    this.#parts.outbox.write(encodeAcknowledgement("pubrel", { packetId: ticket }, this.#parts.version));
  }

  ended(why: EndReason): void {
    this.#parts.onEnded(why);
  }

  /** PUBACK, PUBREC and PUBCOMP of the client. */
  acknowledge({ type, packetId, reasonCode }: AcknowledgementPacket): void {
    if (type !== "pubrec") {
      this.#session?.acknowledge(packetId);
      return;
    }
    if (reasonCode >= 0x80) {
      this.#session?.acknowledge(packetId); // the client refuses the event, so its delivery ends (section 4.3.3)
      return;
    }
    if (this.#session?.receive(packetId) === true) return; // the release follows
    const { outbox, version } = this.#parts;
    outbox.write(encodeAcknowledgement("pubrel", { packetId, reasonCode: reason.packetIdNotFound }, version));
  }

  /** An event that has expired, or is too large for this client, counts as delivered ([MQTT-3.1.2-25]). */
  #leaveOut({ isRepeated, qos }: Delivery, ticket: Ticket): void {
    // The client may know this packet identifier, and would drop a new event under it as a repeat. So it must first release the identifier.
    if (isRepeated && qos === 2) this.#session?.receive(ticket);
    else this.#session?.acknowledge(ticket);
  }

  /** The packet of a delivery; undefined if the client must not get the event. */
  #encode(delivery: Delivery): Buffer | undefined {
    const { version, packetBytesMax, topicAliasMax, encodings } = this.#parts;
    if (topicAliasMax === 0) {
      const shared = encodings.encode(delivery, { version, toFields: () => this.#toFields(delivery) });
      if (shared !== undefined && shared.length <= packetBytesMax) return shared;
    }
    return this.#encodeAlone(delivery);
  }

  /**
   * Encodes for this client alone. If the packet is too large, leaves out what the broker adds: first the event's identifier, sequence and block,
   * then a new alias.
   */
  #encodeAlone(delivery: Delivery): Buffer | undefined {
    const whole = this.#toFields(delivery);
    const bytes = whole && this.#encodeByAlias(whole);
    if (whole === undefined || bytes !== undefined) return bytes;
    const bare = this.#toFields(delivery, false);
    return bare && (this.#encodeByAlias(bare) ?? this.#encodeToFit(bare));
  }

  #encodeByAlias(fields: PublishFields): Buffer | undefined {
    const topicAlias = this.#aliasFor(fields.topic);
    const bytes = this.#encodeToFit(withAlias(fields, topicAlias, this.#aliases.has(fields.topic)));
    if (bytes !== undefined && topicAlias !== undefined) this.#aliases.set(fields.topic, topicAlias); // this packet introduces the alias
    return bytes;
  }

  /** Encodes a PUBLISH; undefined if the packet is too large for the client. */
  #encodeToFit(fields: PublishFields): Buffer | undefined {
    const { version, packetBytesMax } = this.#parts;
    const bytes = encodePublish(fields, version);
    return bytes.length <= packetBytesMax ? bytes : undefined;
  }

  #toFields(delivery: Delivery, mayHavePlace = true): PublishFields | undefined {
    const { version, settings } = this.#parts;
    const wantsPlace = version === 5 && settings.hasEventPlace;
    return toPublish(delivery, {
      prefix: settings.extensionPrefix,
      now: Date.now(),
      payload: settings.payload,
      hasEventPlace: wantsPlace && (mayHavePlace || "too-long"),
    });
  }

  /** The alias of a topic; undefined if no alias is left. */
  #aliasFor(topic: string): number | undefined {
    const next = this.#aliases.size + 1;
    const free = next <= Math.min(this.#parts.topicAliasMax, outboundAliasesMax) ? next : undefined;
    return this.#aliases.get(topic) ?? free;
  }
}

/** The first packet of a topic has its name and alias, later ones have the alias alone (MQTT 5.0, section 3.3.2.3.4). */
function withAlias(fields: PublishFields, topicAlias: number | undefined, isKnown: boolean): PublishFields {
  if (topicAlias === undefined) return fields;
  return { ...fields, topic: isKnown ? "" : fields.topic, properties: { ...fields.properties, topicAlias } };
}
