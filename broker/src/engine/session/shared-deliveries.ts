import type { Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { QoS, SessionFilter } from "../../domain/session-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { SessionKey, SettledEvent } from "../../ports/session-store.ts";
import type { Reservation } from "./share-member.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";

interface HowShared {
  readonly filters: readonly SessionFilter[];
  readonly share: TopicFilter;
  readonly onGiven: (ticket: Ticket, qos: QoS) => void;
}

export interface SharedDeliveriesParts {
  readonly key: () => SessionKey;
  readonly qosOf: (event: Event, order: SessionFilter) => QoS;
  /** Nothing happens if the connection has ended: then the event was returned. */
  readonly give: (event: Event, how: HowShared) => void;
}

/** What one session has of shares: room that is kept, events that its client has, and those that the store is to hear of as settled. */
export class SharedDeliveries {
  readonly #parts: SharedDeliveriesParts;
  readonly #held = new LazyMap<Ticket, SettledEvent>();
  #settled: readonly SettledEvent[] = [];
  #reserved = 0;

  constructor(parts: SharedDeliveriesParts) {
    this.#parts = parts;
  }

  /** Events that come soon. */
  get reserved(): number {
    return this.#reserved;
  }

  /** What the next write of the session has to name. */
  get settled(): readonly SettledEvent[] {
    return this.#settled;
  }

  reserve(event: Event, order: SessionFilter): Reservation {
    const { key, qosOf, give } = this.#parts;
    this.#reserved += 1;
    return {
      to: key(),
      qos: qosOf(event, order),
      cancel: () => void (this.#reserved -= 1),
      give: (share) => {
        this.#reserved -= 1;
        const place = { share, position: event.position };
        const onGiven = (ticket: Ticket, qos: QoS): void => this.#given(ticket, place, qos);
        give(event, { filters: [order], share: order.filter, onGiven });
      },
    };
  }

  /** An event of QoS 2 is the session's from now on: nobody else may get it (MQTT 5.0, [MQTT-4.8.2-4]). Its ticket and this are written together. */
  #given(ticket: Ticket, place: SettledEvent, qos: QoS): void {
    if (qos === 2) this.#settled = [...this.#settled, place];
    else this.#held.set(ticket, place);
  }

  acknowledged(ticket: Ticket): void {
    const place = this.#held.get(ticket);
    if (place === undefined) return;
    this.#held.delete(ticket);
    this.#settled = [...this.#settled, place];
  }

  /** The store has these. */
  written(settled: readonly SettledEvent[]): void {
    const known = new Set(settled);
    this.#settled = this.#settled.filter((place) => !known.has(place));
  }

  /** The chain took back what lies after `to`. */
  rollBack(to: Position): void {
    for (const [ticket, { position }] of this.#held) if (position > to) this.#held.delete(ticket);
    this.#settled = this.#settled.filter(({ position }) => position <= to);
  }
}
