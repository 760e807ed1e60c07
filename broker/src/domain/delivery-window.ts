import type { Position } from "./position.ts";
import type { QoS } from "./session-filter.ts";
import type { TopicFilter } from "./topic-filter.ts";
import type { TopicName } from "./topic-name.ts";
import { LazyMap } from "../lib/lazy-collections.ts";

/** Number of an event in a window: 1 to 65,535, as a packet identifier of MQTT is. */
export type Ticket = number;

/** Events in flight of one window: packet identifiers of MQTT are 16 bits wide. */
const ticketMax = 65_535;

/** An event that was given to a peer, which has not acknowledged it. */
export interface InFlight {
  readonly ticket: Ticket;
  readonly position: Position;
  readonly topic: TopicName;
  /** With which it was given; filters may change before it is given again. */
  readonly qos: QoS;
  /** `received`: the peer has the event and must not get it again; only its release is not acknowledged (MQTT, QoS 2). */
  readonly state: "given" | "received";
  /** Whether it was given because its topic retained it, outside the order of positions; not when left out. */
  readonly isRetained?: boolean | undefined;
  /** The text of the shared filter whose share gave it, outside the order of positions; undefined for none. */
  readonly share?: TopicFilter | undefined;
  /** How often the peer has rejected it, over all connections; 0 when left out. */
  readonly rejections?: number | undefined;
}

/** Whether an event was given beside the stream of the session's own filters, and so has no part in its cursor. */
export function isBeside({ isRetained, share }: Pick<InFlight, "isRetained" | "share">): boolean {
  return isRetained === true || share !== undefined;
}

/**
 * The events that a peer has and has not acknowledged, in the order of their positions, but for those beside its stream. What it acknowledges
 * out of order does not hold back the rest; the lowest position bounds the cursor. Those beside the stream do not: they are found by their places.
 */
export class DeliveryWindow {
  readonly #entries = new LazyMap<Ticket, InFlight>();
  #lastTicket: Ticket = 0;

  get size(): number {
    return this.#entries.size;
  }

  /** Position of the oldest event that the peer may have to get again; undefined for none. */
  get lowest(): Position | undefined {
    for (const entry of this.#entries.values()) {
      if (!isBeside(entry) && entry.state === "given") return entry.position;
    }
    return undefined;
  }

  /** The newest ticket that was given; the next ones come after it. */
  get lastTicket(): Ticket {
    return this.#lastTicket;
  }

  /** Restores a window from its entries in ascending position. */
  static from(entries: Iterable<InFlight>, lastTicket: Ticket): DeliveryWindow {
    const window = new DeliveryWindow();
    for (const entry of entries) window.#entries.set(entry.ticket, entry);
    window.#lastTicket = lastTicket;
    return window;
  }

  /** Those in flight, in the order in which they were given. */
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

  /** Takes an event in, which must come after all that came before unless it is beside the stream, and numbers it. Asserts that a ticket is free. */
  give({ position, topic, qos, isRetained, share }: Omit<InFlight, "ticket" | "state">): Ticket {
    const ticket = this.#nextTicket();
    this.#entries.set(ticket, { ticket, position, topic, qos, state: "given", isRetained, share });
    return ticket;
  }

  /** The peer has the event. Answers whether the ticket was in flight. */
  receive(ticket: Ticket): boolean {
    const entry = this.#entries.get(ticket);
    if (entry === undefined) return false;
    this.#entries.set(ticket, { ...entry, state: "received" }); // keeps its place in the order
    return true;
  }

  /** Answers whether the ticket was in flight. */
  acknowledge(ticket: Ticket): boolean {
    return this.#entries.delete(ticket);
  }

  /** The peer could not use the event. Answers how often it has rejected it by now; undefined if the ticket was not in flight. */
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
   * Forgets what lies after `to`, and what lies after `besideTo` beside the stream: the chain took it back. A peer may keep a ticket of QoS 2 until its
   * release, and would take the next event with that ticket for a repeat, so the release is still to come.
   */
  rollBack(to: Position, besideTo = to): void {
    for (const entry of this.#entries.values()) {
      const position = isBeside(entry) ? besideTo : to;
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
