import type { Position } from "./position.ts";
import type { QoS } from "./session-filter.ts";
import type { TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";
import { LazyMap } from "../lib/lazy-collections.ts";

/** Number of an event in a window: 1 to 65,535, like a packet identifier of MQTT. */
export type Ticket = number;

/** Maximum number of events in flight in one window: packet identifiers of MQTT have 16 bits. */
const ticketMax = 65_535;

/** An event that was given to a peer and is not acknowledged yet. */
export interface InFlight {
  readonly ticket: Ticket;
  readonly position: Position;
  readonly topic: TopicName;
  /** The QoS with which the event was given; filters may change before it is given again. */
  readonly qos: QoS;
  /** `received`: the peer has the event and must not get it again; only its release is not acknowledged (MQTT, QoS 2). */
  readonly state: "given" | "received";
  /** Whether the event was given as a retained event, outside the order of positions; false when left out. */
  readonly isRetained?: boolean | undefined;
  /** The `$share/…` filter for which the event was given, outside the order of positions; undefined for none. */
  readonly share?: TopicFilter | undefined;
  /** How often the peer has rejected the event, over all connections; 0 when left out. */
  readonly rejections?: number | undefined;
}

/** Whether an event is outside the stream of the session's own filters (retained, or from a share), so that the cursor ignores it. */
export function isOutsideStream({ isRetained, share }: Pick<InFlight, "isRetained" | "share">): boolean {
  return isRetained === true || share !== undefined;
}

/**
 * The events that a peer has not acknowledged, in the order in which they were given. The peer may acknowledge in any order. Events of the session's stream
 * ascend by position, and the lowest one bounds the cursor. Events outside the stream may have any position, and the session stores their positions.
 */
export class DeliveryWindow {
  readonly #entries = new LazyMap<Ticket, InFlight>();
  #lastTicket: Ticket = 0;

  get size(): number {
    return this.#entries.size;
  }

  /** Position of the oldest event of the stream that the peer may have to get again; undefined for none. */
  get lowest(): Position | undefined {
    for (const entry of this.#entries.values()) {
      if (!isOutsideStream(entry) && entry.state === "given") return entry.position;
    }
    return undefined;
  }

  /** The newest ticket; the next one comes after it. */
  get lastTicket(): Ticket {
    return this.#lastTicket;
  }

  /** Restores a window from its {@link entries}, in order. */
  static from(entries: Iterable<InFlight>, lastTicket: Ticket): DeliveryWindow {
    const window = new DeliveryWindow();
    for (const entry of entries) window.#entries.set(entry.ticket, entry);
    window.#lastTicket = lastTicket;
    return window;
  }

  /** The events in flight, in the order in which they were given. */
  get entries(): Iterable<InFlight> {
    return this.#entries.values();
  }

  /** Whether an event of the topic is in flight. */
  includes(topic: TopicName): boolean {
    for (const entry of this.#entries.values()) if (entry.topic === topic) return true;
    return false;
  }

  find(ticket: Ticket): InFlight | undefined {
    return this.#entries.get(ticket);
  }

  /** Adds an event and returns its ticket. An event of the stream must come after all earlier ones. @throws RangeError if no ticket is free. */
  give({ position, topic, qos, isRetained, share }: Omit<InFlight, "ticket" | "state">): Ticket {
    const ticket = this.#nextTicket();
    this.#entries.set(ticket, { ticket, position, topic, qos, state: "given", isRetained, share });
    return ticket;
  }

  /** Notes that the peer has the event. Returns whether the ticket was in flight. */
  receive(ticket: Ticket): boolean {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return false;
    this.#entries.set(ticket, { ...entry, state: "received" }); // keeps its place in the order
    return true;
  }

  /** Removes the event. Returns whether the ticket was in flight. */
  acknowledge(ticket: Ticket): boolean {
    return this.#entries.delete(ticket);
  }

  /** Notes that the peer rejected the event. Returns how often it has done so; undefined if the ticket was not in flight. */
  reject(ticket: Ticket): number | undefined {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return undefined;
    const rejections = (entry.rejections ?? 0) + 1;
    this.#entries.set(ticket, { ...entry, rejections }); // keeps its place in the order
    return rejections;
  }

  /** Forgets how often events were rejected. */
  forgetRejections(): void {
    for (const entry of this.#entries.values())
      if (entry.rejections !== undefined) this.#entries.set(entry.ticket, { ...entry, rejections: undefined });
  }

  /**
   * Removes events that a reorg removed from the chain: the events of the stream after `to`, and the events outside the stream after `outsideTo`. Keeps a
   * ticket of QoS 2 as `received`, because the peer may remember the ticket until its release, and would take a new event with that ticket for a repeat.
   */
  rollBack(to: Position, outsideTo = to): void {
    for (const entry of this.#entries.values()) {
      const position = isOutsideStream(entry) ? outsideTo : to;
      if (entry.position <= position) continue;
      if (entry.qos === 2) this.#entries.set(entry.ticket, { ...entry, position, state: "received" });
      else this.#entries.delete(entry.ticket);
    }
  }

  #nextTicket(): Ticket {
    if (this.#entries.size >= ticketMax) throw new RangeError("every ticket is in flight");
    do {
      this.#lastTicket = (this.#lastTicket % ticketMax) + 1;
    } while (this.#entries.has(this.#lastTicket));
    return this.#lastTicket;
  }
}
