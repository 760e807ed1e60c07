import type { Ticket } from "../../domain/delivery-window.ts";
import type { Delivery, EndReason, Peer } from "../../engine/session/peer.ts";
import type { Session } from "../../engine/session/session.ts";
import { encodeAcknowledgement, encodePublish } from "./codec/encode-packet.ts";
import type { AcknowledgementPacket, ProtocolVersion } from "./codec/packet.ts";
import { toPublish } from "./mapping.ts";
import type { Outbox } from "./outbox.ts";
import { reason } from "./reason-codes.ts";

export interface OutboundParts {
  readonly outbox: Outbox;
  readonly version: ProtocolVersion;
  /** Largest packet that the client takes. */
  readonly packetBytesMax: number;
  readonly prefix: string;
  readonly onEnded: (why: EndReason) => void;
}

/** What one connection delivers: events as PUBLISH, and the acknowledgements of the client. */
export class Outbound implements Peer {
  readonly #parts: OutboundParts;
  #session: Session | undefined;

  constructor(parts: OutboundParts) {
    this.#parts = parts;
  }

  /** To be called before anything is acknowledged. */
  begin(session: Session): void {
    this.#session = session;
  }

  get hasRoom(): boolean {
    return this.#parts.outbox.hasRoom;
  }

  deliver(delivery: Delivery): void {
    const { outbox, version, packetBytesMax, prefix } = this.#parts;
    const order = toPublish(delivery, { prefix, now: Date.now() });
    const bytes = order && encodePublish(order, version);
    if (bytes !== undefined && bytes.length <= packetBytesMax) outbox.write(bytes);
    // Expired, or too large for this client: counts as delivered ([MQTT-3.1.2-25]).
    else if (delivery.ticket !== undefined) this.#session?.acknowledge(delivery.ticket);
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
      this.#session?.acknowledge(packetId); // the client refuses it; it ends here (section 4.3.3)
      return;
    }
    const isKnown = this.#session?.receive(packetId) === true;
    const { outbox, version } = this.#parts;
    const code = isKnown ? reason.success : reason.packetIdNotFound;
    outbox.write(encodeAcknowledgement("pubrel", { packetId, reasonCode: code }, version));
  }
}
