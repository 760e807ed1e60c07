import type { Ticket } from "../../domain/delivery-window.ts";

/**
 * The events of one subscription that were sent to the client and not acknowledged, in the order of sending. Each has a name of its own, by which the client
 * settles it.
 */
export class InFlight {
  readonly #names = new Map<Ticket, string>();
  readonly #tickets = new Map<string, Ticket>();
  /**
   * Events that were settled last, or that a reorg removed. A late ACK of such an event does nothing, because a client may settle an event twice, and cannot
   * know what a reorg removed. An ACK of an unknown event is an error.
   */
  readonly #settled = new Set<string>();
  readonly #settledMax: number;

  /** `settledMax`: how many settled events are remembered. */
  constructor(settledMax: number) {
    this.#settledMax = settledMax;
  }

  give(name: string, ticket: Ticket): void {
    // If an event still has this ticket, a reorg removed that event: a late ACK of it must not acknowledge the new one.
    this.#forget(ticket);
    this.#names.set(ticket, name);
    this.#tickets.set(name, ticket);
    this.#settled.delete(name);
  }

  /** Whether the event was sent, as far back as is remembered. */
  knows(name: string): boolean {
    return this.has(name) || this.#settled.has(name);
  }

  /** Whether the event waits to be settled. */
  has(name: string): boolean {
    return this.#tickets.has(name);
  }

  /**
   * Removes the event with this name, or with `through` all events up to it. Returns the tickets in order; none if the event was already settled.
   */
  settle(name: string, reach: "one" | "through"): readonly Ticket[] {
    const last = this.#tickets.get(name);
    if (last === undefined) return [];
    const found = reach === "one" ? [last] : this.#through(last);
    for (const ticket of found) this.#forget(ticket);
    return found;
  }

  #through(last: Ticket): readonly Ticket[] {
    const found: Ticket[] = [];
    for (const ticket of this.#names.keys()) {
      found.push(ticket);
      if (ticket === last) break;
    }
    return found;
  }

  #forget(ticket: Ticket): void {
    const name = this.#names.get(ticket);
    if (name === undefined) return;
    this.#names.delete(ticket);
    this.#tickets.delete(name);
    this.#settled.add(name);
    const [oldest] = this.#settled;
    if (this.#settled.size > this.#settledMax && oldest !== undefined) this.#settled.delete(oldest);
  }
}
