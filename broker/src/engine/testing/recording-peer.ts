import type { Ticket } from "../../domain/delivery-window.ts";
import type { Delivery, EndReason, Peer } from "../session/peer.ts";

/** A connection that records its deliveries. */
export class RecordingPeer implements Peer {
  readonly deliveries: Delivery[] = [];
  readonly released: Ticket[] = [];
  hasRoom = true;
  endedBecause: EndReason | undefined;

  get sequences(): number[] {
    return this.deliveries.map(({ event }) => event.sequence);
  }

  /** The ticket of an event, by its sequence; 0 if it has none. */
  ticketOf(sequence: number): Ticket {
    return this.deliveries.find(({ event }) => event.sequence === sequence)?.ticket ?? 0;
  }

  deliver(delivery: Delivery): void {
    this.deliveries.push(delivery);
  }

  release(ticket: Ticket): void {
    this.released.push(ticket);
  }

  ended(why: EndReason): void {
    this.endedBecause = why;
  }
}
