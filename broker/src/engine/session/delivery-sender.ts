import type { EventId } from "@stele/wire";
import type { DeliveryWindow, InFlight, Ticket } from "../../domain/delivery-window.ts";
import type { QoS } from "../../domain/session-filter.ts";
import type { Event } from "../../domain/event.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EventIds } from "../event-ids.ts";
import type { Connection } from "./connection.ts";
import type { FilterSet } from "./filter-set.ts";
import type { Delivery } from "./peer.ts";

export interface DeliverySenderParts {
  readonly filters: FilterSet;
  readonly window: DeliveryWindow;
  readonly eventIds: EventIds;
  readonly clock: Pick<Clock, "now">;
  /** Whether the store has the session. */
  readonly isStored: () => boolean;
  readonly onChanged: () => void;
}

/** Options of the first delivery of an event. */
interface FirstDelivery extends Pick<InFlight, "isRetained" | "share">, Pick<Delivery, "filters"> {
  /** Called before the peer gets the event; with QoS 0, there is no ticket. */
  readonly onGiven?: ((ticket: Ticket | undefined, qos: QoS) => void) | undefined;
}

type GivenFields = Required<Omit<Delivery, "eventId">>;

/** A delivery that computes its eventId on demand: most peers never read it. */
class GivenDelivery implements Delivery {
  readonly event: Event;
  readonly qos: QoS;
  readonly ticket: Ticket | undefined;
  readonly isRepeated: boolean;
  readonly isRetained: boolean;
  readonly filters: Delivery["filters"];
  readonly #eventIds: EventIds;

  constructor({ event, qos, ticket, isRepeated, isRetained, filters }: GivenFields, eventIds: EventIds) {
    this.event = event;
    this.qos = qos;
    this.ticket = ticket;
    this.isRepeated = isRepeated;
    this.isRetained = isRetained;
    this.filters = filters;
    this.#eventIds = eventIds;
  }

  get eventId(): EventId {
    return this.#eventIds.of(this.event);
  }
}

/** Delivers the events of one session to its peer, and records them in the session's window. */
export class DeliverySender {
  readonly #parts: DeliverySenderParts;

  constructor(parts: DeliverySenderParts) {
    this.#parts = parts;
  }

  /** Delivers an event for the first time. */
  first(event: Event, connection: Connection, { filters, onGiven, isRetained = false, share }: FirstDelivery): void {
    const { filters: filterSet, window, onChanged } = this.#parts;
    const qos = filterSet.qosOf(event, filters);
    const { position, topic } = event;
    const ticket = qos === 0 ? undefined : window.give({ position, topic, qos, isRetained, share });
    if (ticket !== undefined) connection.held.add(ticket);
    onGiven?.(ticket, qos);
    onChanged();
    this.#deliver(connection, { event, qos, ticket, isRepeated: false, isRetained, filters });
  }

  /** Delivers an event of the window again, with the same ticket. */
  again(
    event: Event,
    connection: Connection,
    { entry, filters }: { readonly entry: InFlight; readonly filters: Delivery["filters"] },
  ): void {
    const { ticket, qos, isRetained = false } = entry;
    connection.held.add(ticket);
    this.#deliver(connection, { event, qos, ticket, isRepeated: true, isRetained, filters });
  }

  /** Creates a delivery of an event that is never committed: the peer gets it once, and acknowledges nothing. */
  passing(event: Event, filters: Delivery["filters"]): Delivery {
    this.#note(filters);
    const fields = { event, qos: 0, ticket: undefined, isRepeated: false, isRetained: false, filters } as const;
    return new GivenDelivery(fields, this.#parts.eventIds);
  }

  /** A ticket of QoS 2 is stored before the peer gets it: the peer recognizes a repeat by the ticket alone. */
  #deliver({ outgoing }: Connection, fields: GivenFields): void {
    const { eventIds, isStored } = this.#parts;
    this.#note(fields.filters);
    const afterWrite = isStored() && fields.qos === 2 && !fields.isRepeated;
    outgoing.send(new GivenDelivery(fields, eventIds), { afterWrite });
  }

  #note(filters: Delivery["filters"]): void {
    const { filters: filterSet, clock } = this.#parts;
    filterSet.noteNotified(filters, clock.now());
  }
}
