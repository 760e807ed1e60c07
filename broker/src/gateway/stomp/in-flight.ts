import type { Ticket } from "../../domain/delivery-window.ts";

/** The events of one subscription that were sent to the client and not acknowledged, by eventId, in the order of sending. */
export class InFlight {
  readonly #tickets = new Map<string, Ticket>();
  readonly #eventIds = new Map<Ticket, string>();
  /**
   * Events that were settled last, or that a reorg removed. A late ACK of one of them does nothing, while an ACK of an unknown event is an error: a
   * client may settle an event twice, and cannot know what a reorg removed.
   */
  readonly #settled = new Set<string>();
  readonly #settledMax: number;

  /** `settledMax`: how many settled events are remembered. */
  constructor(settledMax: number) {
    this.#settledMax = settledMax;
  }

  give(eventId: string, ticket: Ticket): void {
    // If an event still has this ticket, a reorg removed that event: a late ACK of it must not acknowledge the new one.
    const former = this.#eventIds.get(ticket);
    if (former !== undefined) this.#forget(former);
    this.#release(eventId);
    this.#tickets.set(eventId, ticket); // an event that is sent again moves to the end of the order
    this.#eventIds.set(ticket, eventId);
    this.#settled.delete(eventId);
  }

  /** Whether the event was sent, as far back as is remembered. */
  knows(eventId: string): boolean {
    return this.#tickets.has(eventId) || this.#settled.has(eventId);
  }

  /** Whether the event waits to be settled. */
  has(eventId: string): boolean {
    return this.#tickets.has(eventId);
  }

  /** Removes the event, and with `through` all events that were sent before it. Returns their tickets in order; none if it was already settled. */
  settle(eventId: string, reach: "one" | "through"): readonly Ticket[] {
    const ticket = this.#tickets.get(eventId);
    if (ticket === undefined) return [];
    if (reach === "one") {
      this.#forget(eventId);
      return [ticket];
    }
    const found: Ticket[] = [];
    for (const [known, itsTicket] of this.#tickets) {
      this.#forget(known);
      found.push(itsTicket);
      if (known === eventId) break;
    }
    return found;
  }

  #release(eventId: string): void {
    const ticket = this.#tickets.get(eventId);
    if (ticket !== undefined) this.#eventIds.delete(ticket);
    this.#tickets.delete(eventId);
  }

  #forget(eventId: string): void {
    this.#release(eventId);
    this.#settled.add(eventId);
    const [oldest] = this.#settled;
    if (this.#settled.size > this.#settledMax && oldest !== undefined) this.#settled.delete(oldest);
  }
}
