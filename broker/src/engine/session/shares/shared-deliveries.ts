import type { Ticket } from "../../../domain/delivery-window.ts";
import type { Event } from "../../../domain/event.ts";
import type { Position } from "../../../domain/position.ts";
import type { QoS, SessionFilter } from "../../../domain/session-filter.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { SessionKey, SettledEvent } from "../../../ports/session-store.ts";
import type { Reservation } from "./share-member.ts";
import { LazyMap } from "../../../lib/lazy-collections.ts";

interface HowShared {
  readonly filters: readonly SessionFilter[];
  readonly share: TopicFilter;
  /** Called before the peer gets the event; undefined if the store does not keep the event. */
  readonly onGiven: ((ticket: Ticket | undefined, qos: QoS) => void) | undefined;
}

export interface SharedDeliveriesParts {
  readonly key: () => SessionKey;
  readonly qosOf: (event: Event, sessionFilter: SessionFilter) => QoS;
  /** Delivers the event. Does nothing if the connection has ended: if the store keeps the event, it returns to its share. */
  readonly give: (event: Event, how: HowShared) => void;
  /** Called when reserved room may be free again: another share of the session may wait for it. */
  readonly onRoom: () => void;
}

/** One session's deliveries from shares: reserved room, events that its client has, and settled events that the store must record. */
export class SharedDeliveries {
  readonly #parts: SharedDeliveriesParts;
  readonly #held = new LazyMap<Ticket, SettledEvent>();
  #settled: readonly SettledEvent[] = [];
  #reserved = 0;

  constructor(parts: SharedDeliveriesParts) {
    this.#parts = parts;
  }

  /** Number of events for which room is reserved. */
  get reserved(): number {
    return this.#reserved;
  }

  /** The settled events that the next write of the session must record. */
  get settled(): readonly SettledEvent[] {
    return this.#settled;
  }

  reserve(event: Event, sessionFilter: SessionFilter): Reservation {
    const { key, qosOf, give, onRoom } = this.#parts;
    this.#reserved += 1;
    const to = key();
    return {
      to,
      qos: qosOf(event, sessionFilter),
      cancel: () => {
        this.#reserved -= 1;
        onRoom();
      },
      give: (share) => {
        this.#reserved -= 1;
        const place = share && { share, position: event.position, givenEpoch: to.epoch };
        const onGiven = place && ((ticket: Ticket | undefined, qos: QoS) => this.#given(ticket, place, qos));
        give(event, { filters: [sessionFilter], share: sessionFilter.filter, onGiven });
        onRoom();
      },
    };
  }

  /**
   * An event of QoS 2 now belongs to the session: nobody else may get it (MQTT 5.0, [MQTT-4.8.2-4]). One write stores the settlement and the ticket. An event
   * of QoS 0 has no ticket, and nobody acknowledges it.
   */
  #given(ticket: Ticket | undefined, place: SettledEvent, qos: QoS): void {
    if (ticket === undefined || qos === 2) this.#settled = [...this.#settled, place];
    else this.#held.set(ticket, place);
  }

  acknowledged(ticket: Ticket): void {
    const place = this.#held.get(ticket);
    if (place === undefined) return;
    this.#held.delete(ticket);
    this.#settled = [...this.#settled, place];
  }

  /** Call it when the store has recorded the settled events. */
  written(settled: readonly SettledEvent[]): void {
    const known = new Set(settled);
    this.#settled = this.#settled.filter((place) => !known.has(place));
  }

  /** Forgets the events after `to`, which a reorg removed. */
  rollBack(to: Position): void {
    for (const [ticket, { position }] of this.#held) if (position > to) this.#held.delete(ticket);
    this.#settled = this.#settled.filter(({ position }) => position <= to);
  }
}
