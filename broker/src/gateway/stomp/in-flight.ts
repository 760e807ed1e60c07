import type { Ticket } from "../../domain/delivery-window.ts";
import { SetMap } from "../../lib/set-map.ts";

/**
 * The events of one subscription that were sent to the client and not acknowledged, in the order of sending. Two of them may have the same eventId, since the
 * digest of a topic in it is short, and publishers choose the names of topics.
 */
export class InFlight {
  readonly #eventIds = new Map<Ticket, string>();
  /** The tickets of each eventId, in the order of sending. */
  readonly #tickets = new SetMap<string, Ticket>();
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
    this.#forget(ticket);
    this.#eventIds.set(ticket, eventId);
    this.#tickets.add(eventId, ticket);
    this.#settled.delete(eventId);
  }

  /** Whether the event was sent, as far back as is remembered. */
  knows(eventId: string): boolean {
    return this.has(eventId) || this.#settled.has(eventId);
  }

  /** Whether the event waits to be settled. */
  has(eventId: string): boolean {
    return this.#tickets.get(eventId).size > 0;
  }

  /**
   * Removes the event that was sent first of those with this eventId, and with `through` all events that were sent before it. Returns their tickets in order;
   * none if it was already settled.
   */
  settle(eventId: string, reach: "one" | "through"): readonly Ticket[] {
    const [last] = this.#tickets.get(eventId);
    if (last === undefined) return [];
    const found = reach === "one" ? [last] : this.#through(last);
    for (const ticket of found) this.#forget(ticket);
    return found;
  }

  #through(last: Ticket): readonly Ticket[] {
    const found: Ticket[] = [];
    for (const ticket of this.#eventIds.keys()) {
      found.push(ticket);
      if (ticket === last) break;
    }
    return found;
  }

  #forget(ticket: Ticket): void {
    const eventId = this.#eventIds.get(ticket);
    if (eventId === undefined) return;
    this.#eventIds.delete(ticket);
    this.#tickets.delete(eventId, ticket);
    this.#settled.add(eventId);
    const [oldest] = this.#settled;
    if (this.#settled.size > this.#settledMax && oldest !== undefined) this.#settled.delete(oldest);
  }
}
